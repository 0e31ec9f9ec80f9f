"""A table receives upserts and returns complete changes: from its topic, or from a stream that looks up old rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import read_stream, write_stream
from tests.support.spark_features import rows_limit
from tests.support.spark_topics import committed_values
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark
BATCHES: list[list[tuple[str, int, str | None]]] = [
    [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")],
    [("+U", 1, "A"), ("+U", 1, "AA"), ("-D", 9, None), ("-D", 2, None)],
    [("+U", 2, "B"), ("+U", 3, "C"), ("+I", 4, "d"), ("-D", 4, None)],
]
TRUTH = {1: "AA", 2: "B", 3: "C"}


def write_upserts(spark: SparkSession, table: DynamicTable, directory: Path) -> None:
    """Write one micro-batch each; commit the last twice, as after a crash between our commit and Spark's."""
    directory.mkdir()
    for number, batch in enumerate(BATCHES):
        path = directory / f"{number}.json"
        path.write_text("\n".join(json.dumps({"_row_kind": kind, "id": key, "v": v}) for kind, key, v in batch))
        # Spark reads files in the order of their modification times, which must be distinct.
        os.utime(path, (1_700_000_000 + number,) * 2)
    checkpoint = directory.with_name(f"{directory.name}-checkpoint")
    for _ in range(2):
        source = spark.readStream.schema("id long, v string, _row_kind string").option("maxFilesPerTrigger", 1)
        run(source.json(str(directory)), table, checkpoint)
        for path in (checkpoint / "commits" / "2", checkpoint / "commits" / ".2.crc"):
            path.unlink(missing_ok=True)


def run(df: Any, table: DynamicTable, checkpoint: Path) -> None:
    stream = write_stream(df, table, checkpoint_location=str(checkpoint), available_now=True, compaction=False)
    stream.awaitTermination(240)
    assert not stream.isActive


def test_writer_tasks_look_up_what_was_there_before(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    table = make_table(log=True, bucket=2, log__changelog_mode="all")
    write_upserts(spark, table, tmp_path / "input")

    there: dict[int, str] = {}
    for change in committed_values(table):
        row = change["after"] or change["before"]
        told = None if change["before"] is None else change["before"]["v"]
        assert told == there.pop(row["id"], None), change
        if change["after"] is not None:
            there[row["id"]] = row["v"]
    assert there == TRUTH
    assert {row["id"]: row["v"] for row in table.to_arrow().to_pylist()} == TRUTH


@pytest.mark.parametrize("normalize", ["lookup", "state"])
def test_a_normalised_stream_can_be_summed(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path, normalize: str
) -> None:
    """The target counts rows: without old rows it would keep every version of a key.

    Half-way through, the driver appears to be killed before Spark recorded the last batch, which is then read again.
    """
    upserts, counted = make_table("upserts", log=True, bucket=2), make_table("counted", primary_key=())
    state = str(tmp_path / "state") if normalize == "state" else None
    stream = read_stream(spark, upserts, normalize=normalize, rows_per_trigger_max=rows_limit(6), state_directory=state)
    checkpoint = tmp_path / "checkpoint"
    if not rows_limit(6):
        # Otherwise the first micro-batch would have all rows, and need its snapshot when it is repeated.
        run(stream, counted, checkpoint)
    for number, batch in enumerate(BATCHES):
        kinds, keys, values = zip(*batch, strict=True)
        upserts.append(whole_rows(upserts, {"_row_kind": kinds, "id": keys, "v": values}))
        if number == 0:
            run(stream, counted, checkpoint)
            last = max(int(each.name) for each in (checkpoint / "commits").iterdir() if each.name.isdigit())
            for path in (checkpoint / "commits" / f"{last}", checkpoint / "commits" / f".{last}.crc"):
                path.unlink(missing_ok=True)
        if normalize == "state":
            upserts.maintenance.expire_snapshots(retain_last=1)

    run(stream, counted, checkpoint)

    assert sorted((row["id"], row["v"]) for row in counted.to_arrow().to_pylist()) == sorted(TRUTH.items())
