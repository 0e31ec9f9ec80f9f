"""Data frames that Spark may have reordered, or that lack old rows, are written correctly or refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError
from storage_lib.spark import SinkSource, SinkSpec, read, read_stream, write_stream
from storage_lib.spark.stream.plan.write_plan import plan_of_write
from storage_lib.spark.streaming_sink import query_of
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark
KEYS = 100


@pytest.fixture
def sorting_joins(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session that never broadcasts on its own."""
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield spark
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(before))


def changed(table: DynamicTable) -> None:
    for n, v in enumerate("abc"):
        rows = {"id": list(range(KEYS)), "v": [v] * KEYS, "n": pa.array([n] * KEYS, pa.int32())}
        table.append(pa.table({**rows, "_row_kind": ["+U"] * KEYS}))


def written(df: DataFrame, table: DynamicTable, checkpoint: Path, **how: str) -> list[dict[str, object]]:
    stream = write_stream(df, table, checkpoint_location=str(checkpoint), available_now=True, **how)  # type: ignore[arg-type]
    stream.awaitTermination(240)
    return sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])


def test_a_joined_stream_is_put_back_into_order_by_its_positions(
    sorting_joins: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, labels, sink = make_table("source"), make_table("labels", primary_key=("v",)), make_table("sink")
    changed(source)
    labels.append(whole_rows(labels, {"id": [1, 2], "v": ["a", "b"]}))
    right = read(sorting_joins, labels, columns=["v"], live=True)

    with pytest.raises(
        InvalidInputError, match=r"join with db.labels may change .* read_stream\(..., has_position=True"
    ):
        written(read_stream(sorting_joins, source).join(right, "v", "left"), sink, tmp_path / "refused")
    joined = read_stream(sorting_joins, source, has_position=True).join(right, "v", "left")
    repartitioned = joined.repartition(3, "n")

    assert written(repartitioned, sink, tmp_path / "checkpoint") == [
        {"id": each, "v": "c", "n": 2} for each in range(KEYS)
    ]


def test_a_frame_that_lacks_what_it_takes_is_refused_with_the_remedy(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, sink, counted = make_table("source"), make_table("sink"), make_table("counted", primary_key=())
    by_number = make_table("by_number", primary_key=("n",), columns={"n": "INT", "id": "BIGINT", "v": "STRING"})
    changed(source)
    df = read_stream(spark, source)
    complete = read_stream(spark, source, normalize="lookup")
    unpinned = complete.join(read(spark, source, columns=["n"], live=True).distinct(), "n")
    frozen = complete.join(read(spark, source, columns=["n"]).distinct(), "n", "left")
    cases = [
        (df.where("n > 1"), sink, r"read_stream\(..., normalize='lookup'"),
        (df, counted, r"read_stream\(..., normalize='lookup'"),
        (df.drop("_row_kind"), sink, "have lost the column _row_kind"),
        (unpinned, sink, r"read\(..., snapshot_id=...\)"),
        (frozen, sink, r"db.source was read at the snapshot that was the newest then.* read\(..., live=True\)"),
    ]

    for frame, table, remedy in cases:
        with pytest.raises(InvalidInputError, match=remedy):
            written(frame, table, tmp_path / "refused")
    assert [row["n"] for row in written(complete.where("n > 1"), sink, tmp_path / "sink")] == [2] * KEYS
    assert len(written(complete, counted, tmp_path / "counted")) == KEYS
    with pytest.raises(InvalidInputError, match="two rows of the query share the key"):
        written(complete, by_number, tmp_path / "by_number")


def test_a_sink_reads_the_rows_before_changes_where_its_table_needs_them(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, counted, sink = make_table("source"), make_table("counted", primary_key=()), make_table("sink")
    changed(source)
    spec = SinkSpec(
        warehouse=source.address.warehouse,
        table="db.counted",
        source=SinkSource(kind="dynamic_table", name="db.source"),
        checkpoint_location=str(tmp_path / "checkpoint"),
        heartbeat_path=str(tmp_path / "heartbeat.json"),
    )
    catalog = open_catalog(source.address.warehouse)

    df = query_of(spark, catalog, counted, spec, change_tracking=None)
    plain = query_of(spark, catalog, sink, spec, change_tracking=None)

    assert [row["n"] for row in written(df, counted, tmp_path / "counted")] == [2] * KEYS
    assert plan_of_write(plain, sink)[0].normalize == "none"


def test_a_stream_of_files_names_the_column_that_tells_the_order(
    sorting_joins: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    sink = make_table("sink")
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    lines = [{"id": each, "v": v, "lsn": n} for n, v in enumerate("abc") for each in range(KEYS)]
    (incoming / "1.json").write_text("\n".join(json.dumps({**line, "_row_kind": "+U"}) for line in lines))
    changes = sorting_joins.readStream.schema("id LONG, v STRING, lsn LONG, _row_kind STRING").json(str(incoming))
    labels = sorting_joins.createDataFrame([("a", 1), ("b", 2)], "v STRING, n INT")
    joined = changes.join(labels, "v", "left")

    with pytest.raises(InvalidInputError, match="position_column="):
        written(joined.drop("lsn"), sink, tmp_path / "refused")

    rows = written(joined, sink, tmp_path / "checkpoint", position_column="lsn")
    assert rows == [{"id": each, "v": "c", "n": None} for each in range(KEYS)]
