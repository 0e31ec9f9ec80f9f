"""Streams from and into a table, exactly once from their checkpoints."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError, UntrackedCommitError
from storage_lib.spark import read, read_stream, write_stream
from storage_lib.spark.versions.spark_feature import SparkFeature, installed_since
from tests.support.spark_features import needs_spark
from tests.support.spark_topics import committed_changes
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.spark import TableStream
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark
CHANGES = "id long, v string, _row_kind string"


class JsonSource:
    """A stream source whose batches the test writes, one file each."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.directory = directory
        self._count = 0

    def add(self, *changes: tuple[str, int, str]) -> None:
        lines = [json.dumps({"_row_kind": kind, "id": key, "v": value}) for kind, key, value in changes]
        path = self.directory / f"{self._count:03}.json"
        path.write_text("\n".join(lines))
        # Spark reads files in the order of their modification times, which must be distinct.
        os.utime(path, (1_700_000_000 + self._count,) * 2)
        self._count += 1

    def stream(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(CHANGES).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.directory))


@pytest.fixture
def source(tmp_path: Path) -> JsonSource:
    return JsonSource(tmp_path / "input")


def content_of(table: DynamicTable) -> dict[int, str]:
    rows = table.to_arrow(columns=["id", "v"]).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


def finish(stream: TableStream) -> TableStream:
    stream.awaitTermination(240)
    assert not stream.isActive
    return stream


def committed_messages(table: DynamicTable) -> list[tuple[str, int]]:
    return [(op, key) for op, key, _ in committed_changes(table)]


def test_a_stream_writes_both_stores_and_another_reads_them_with_their_kinds(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    first, second = make_table("first", log=True, bucket=2), make_table("second", log=True, bucket=3)
    first.append(whole_rows(first, {"id": [1, 2], "v": ["a", "b"]}))
    source.add(("+U", 1, "A"), ("+I", 3, "c"))
    source.add(("-D", 2, "b"), ("+I", 4, "d"))

    finish(
        write_stream(
            source.stream(spark), first, checkpoint_location=str(tmp_path / "c1"), available_now=True, compaction=False
        )
    )
    plain = spark.readStream.format("dynamic_table").options(**options_of(first)).load()
    assert plain.columns == ["id", "v", "n", "_row_kind"]
    finish(write_stream(plain, second, checkpoint_location=str(tmp_path / "c2"), available_now=True, compaction=False))

    truth = {1: "A", 3: "c", 4: "d"}
    assert content_of(first) == truth
    assert content_of(second) == truth
    assert Counter(committed_messages(first)) == Counter([("c", 1), ("c", 2), ("u", 1), ("c", 3), ("d", 2), ("c", 4)])

    source.add(("-D", 1, "A"))
    finish(
        write_stream(
            source.stream(spark), first, checkpoint_location=str(tmp_path / "c1"), available_now=True, compaction=False
        )
    )
    finish(write_stream(plain, second, checkpoint_location=str(tmp_path / "c2"), available_now=True, compaction=False))
    assert content_of(second) == {3: "c", 4: "d"}
    assert committed_messages(second).count(("d", 1)) == 1, "the second run continued from the log"


def options_of(table: DynamicTable) -> dict[str, str]:
    return {**table.address.options, "warehouse": table.address.warehouse, "table": table.address.name}


def test_a_batch_that_was_committed_but_not_noted_by_spark_is_not_written_again(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    """Deleting the newest file of Spark's commit log simulates a crash between the two commits."""
    table = make_table(log=True)
    checkpoint = tmp_path / "checkpoint"
    source.add(("+I", 1, "a"))
    source.add(("+I", 2, "b"))
    run: dict[str, Any] = {"checkpoint_location": str(checkpoint), "available_now": True, "compaction": False}
    finish(write_stream(source.stream(spark), table, **run))
    snapshots = table.context.file_store.snapshots.latest_id()
    for path in [checkpoint / "commits" / "1", checkpoint / "commits" / ".1.crc"]:
        path.unlink(missing_ok=True)

    finish(write_stream(source.stream(spark), table, **run))

    assert table.context.file_store.snapshots.latest_id() == snapshots
    assert content_of(table) == {1: "a", 2: "b"}
    assert Counter(committed_messages(table)) == Counter([("c", 1), ("c", 2)])
    parquet = list(Path(table.location).rglob("*.parquet"))
    assert len(parquet) == len(table.inspect.files().to_pylist()), "the replayed batch left no files behind"


def test_a_run_that_repeats_a_batch_goes_on_to_the_rows_that_came_since(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, table = make_table("source"), make_table("target")
    checkpoint = tmp_path / "checkpoint"

    def run() -> None:
        rows = read_stream(spark, source, startup="full")
        finish(write_stream(rows, table, checkpoint_location=str(checkpoint), available_now=True, compaction=False))

    source.append(whole_rows(source, {"id": [1], "v": ["a"]}))
    run()
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (checkpoint / "commits" / name).unlink(missing_ok=True)
    source.append(whole_rows(source, {"id": [2], "v": ["b"]}))
    run()

    assert content_of(table) == {1: "a", 2: "b"}
    assert len(table.refresh().inspect.snapshots()) == 2, "the repeated micro-batch was not committed again"


@pytest.mark.parametrize("directory", ["offsets", "commits"])
def test_a_stream_starts_after_a_driver_that_died_while_it_wrote_its_first_checkpoint(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path, directory: str
) -> None:
    table = make_table(log=True)
    source.add(("+I", 1, "a"))
    left = tmp_path / "checkpoint" / directory
    left.mkdir(parents=True)
    for name in (".0.6b1f2c0e-6a51-4d0f-9d1c-0c8f0a3c7e55.tmp", "..0.6b1f2c0e-6a51-4d0f-9d1c-0c8f0a3c7e55.tmp.crc"):
        (left / name).write_text("v1\n{")

    checkpoint = str(tmp_path / "checkpoint")
    finish(
        write_stream(source.stream(spark), table, checkpoint_location=checkpoint, available_now=True, compaction=False)
    )

    assert content_of(table) == {1: "a"}
    assert {path.name for path in left.iterdir()} <= {"0", ".0.crc"}


@pytest.mark.skipif(not installed_since(4, 1), reason="Spark 4.0 takes no notice of unknown files")
def test_an_unknown_file_in_a_checkpoint_is_left_to_spark_which_refuses_it(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    source.add(("+I", 1, "a"))
    foreign = tmp_path / "checkpoint" / "offsets" / ".0.tmp"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("not of Spark")
    checkpoint = str(tmp_path / "checkpoint")

    stream = write_stream(
        source.stream(spark), make_table(), checkpoint_location=checkpoint, available_now=True, compaction=False
    )
    with pytest.raises(Exception, match="CHECKPOINT_LOCATION_NOT_EMPTY"):
        stream.awaitTermination()

    assert foreign.read_text() == "not of Spark"


def test_the_checkpoint_of_a_stream_into_another_table_is_refused(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    """Rows that the first table has received would silently never reach the second."""
    run: dict[str, Any] = {"checkpoint_location": str(tmp_path / "c"), "available_now": True, "compaction": False}
    source.add(("+I", 1, "a"))
    finish(write_stream(source.stream(spark), make_table("first"), **run))

    with pytest.raises(InvalidInputError, match="checkpoint_location of its own"):
        write_stream(source.stream(spark), make_table("second"), **run)


def test_the_plain_format_takes_the_querys_identity_from_its_checkpoint(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    table = make_table()
    source.add(("+I", 1, "a"))
    writer = source.stream(spark).coalesce(1).writeStream.format("dynamic_table").options(**options_of(table))

    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination(240)

    assert content_of(table) == {1: "a"}
    snapshot = table.context.file_store.snapshots.latest()
    assert snapshot is not None
    assert (snapshot.commit_user, snapshot.commit_identifier) == (query.id, 0)


def test_a_stream_whose_task_fails_ends_with_our_error_and_leaves_the_table_to_others(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    table = make_table(log=True, bucket=2)
    source.add(*[("+I", key, "x") for key in range(20)])
    source.add(*[("+I", key, "y") for key in range(20)], ("oops", 99, "y"))

    stream = write_stream(
        source.stream(spark),
        table,
        checkpoint_location=str(tmp_path / "checkpoint"),
        available_now=True,
        compaction=False,
    )
    with pytest.raises(InvalidInputError, match="'oops'"):
        stream.awaitTermination(240)

    assert isinstance(stream.error(), InvalidInputError)
    assert content_of(table) == dict.fromkeys(range(20), "x")
    assert table.context.leases.holder() is None
    assert len(committed_messages(table)) == 20, "no transaction was left open in the readers' way"


@needs_spark(SparkFeature.ADMISSION_CONTROL)
def test_a_stream_reads_at_most_what_it_is_told_to(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, target = make_table("source", log=True), make_table("target")
    run: dict[str, Any] = {
        "checkpoint_location": str(tmp_path / "checkpoint"),
        "available_now": True,
        "compaction": False,
    }
    df = read_stream(spark, source, startup="full", rows_per_trigger_max=10)
    finish(write_stream(df, target, **run))
    source.append(whole_rows(source, {"id": list(range(35))}))

    stream = finish(write_stream(df, target, **run))

    assert [each["numInputRows"] for each in stream.recentProgress if each["numInputRows"]] == [10, 10, 10, 5]
    assert target.to_arrow().num_rows == 35


def test_a_table_without_a_log_is_followed_by_its_snapshots(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, target = make_table("source", bucket=2), make_table("target")
    run: dict[str, Any] = {
        "checkpoint_location": str(tmp_path / "checkpoint"),
        "available_now": True,
        "compaction": False,
    }
    source.append(whole_rows(source, {"id": [1, 2], "v": ["a", "b"]}))
    finish(write_stream(read_stream(spark, source), target, **run))
    source.append(whole_rows(source, {"id": [2, 3], "v": ["b", "c"], "_row_kind": ["-D", "+I"]}))
    finish(write_stream(read_stream(spark, source), target, **run))

    assert content_of(target) == {1: "a", 3: "c"}


def test_a_stream_ends_at_a_commit_that_it_is_not_told_of_and_goes_on_when_told_to_warn_only(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    source, target = make_table("source", log=True), make_table("target")
    run: dict[str, Any] = {
        "checkpoint_location": str(tmp_path / "checkpoint"),
        "available_now": True,
        "compaction": False,
    }
    source.append(whole_rows(source, {"id": [1], "v": ["a"]}))
    finish(write_stream(read_stream(spark, source, on_untracked="fail"), target, **run))
    source.append(whole_rows(source, {"id": [2], "v": ["b"]}))
    source.overwrite(whole_rows(source, {"id": [3], "v": ["c"]}), partition={}, change_tracking=False)
    source.append(whole_rows(source, {"id": [4], "v": ["d"]}))

    with pytest.raises(UntrackedCommitError, match=r"snapshot 3, an untracked OVERWRITE.*log\.scan=full"):
        finish(write_stream(read_stream(spark, source, on_untracked="fail"), target, **run))
    before = {1: "a", 2: "b"} if SparkFeature.ADMISSION_CONTROL.is_here else {1: "a"}
    assert content_of(target) == before, "where one micro-batch has all new rows, it has none of them"
    finish(write_stream(read_stream(spark, source, on_untracked="warn"), target, **run))
    finish(write_stream(read_stream(spark, source, on_untracked="fail"), target, **run))

    assert content_of(target) == {1: "a", 2: "b", 4: "d"}


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_an_aggregation_keeps_its_table_up_to_date(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    source: JsonSource,
    tmp_path: Path,
    mode: str,
) -> None:
    columns = pa.schema([pa.field("v", pa.string(), nullable=False), ("total", pa.int64())])
    table = make_table(columns=columns, primary_key=("v",))
    run: dict[str, Any] = {
        "checkpoint_location": str(tmp_path / "checkpoint"),
        "available_now": True,
        "compaction": False,
    }
    source.add(("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "a"))
    sums = source.stream(spark).groupBy("v").sum("id").withColumnRenamed("sum(id)", "total")
    finish(write_stream(sums, table, output_mode=mode, **run))
    source.add(("+I", 4, "a"))
    stream = finish(write_stream(sums, table, output_mode=mode, **run))

    assert {row["v"]: row["total"] for row in table.to_arrow().to_pylist()} == {"a": 8, "b": 2}
    snapshot = table.context.file_store.snapshots.latest()
    assert snapshot is not None
    assert (snapshot.commit_user, snapshot.commit_identifier) == (str(stream.id), 1)

    # As after a crash between our commit and Spark's: the batch is not written again, but Spark's state needs it.
    for path in (tmp_path / "checkpoint" / "commits" / "1", tmp_path / "checkpoint" / "commits" / ".1.crc"):
        path.unlink(missing_ok=True)
    source.add(("+I", 5, "a"))
    finish(write_stream(sums, table, output_mode=mode, **run))
    assert {row["v"]: row["total"] for row in table.to_arrow().to_pylist()} == {"a": 13, "b": 2}
    assert table.context.file_store.snapshots.latest_id() == snapshot.id + 1


def test_compaction_runs_beside_the_stream(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    table = make_table(num_sorted_run__compaction_trigger=3)
    for key in range(8):
        source.add(("+I", key, "x"))

    stream = write_stream(
        source.stream(spark),
        table,
        checkpoint_location=str(tmp_path / "checkpoint"),
        compaction_interval_seconds=0.05,
    )
    stream.processAllAvailable()
    while stream.compaction is not None and stream.compaction.snapshot_count == 0 and stream.compaction.error is None:
        stream.awaitTermination(1)
    stream.stop()

    assert stream.compaction is not None
    assert stream.compaction.error is None
    assert content_of(table) == dict.fromkeys(range(8), "x")
    assert read(spark, table).count() == 8


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"output_mode": "upsert"}, "upsert"),
        ({"checkpoint_location": ""}, "checkpoint_location"),
    ],
)
def test_a_stream_that_can_not_work_is_refused_before_it_starts(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    source: JsonSource,
    tmp_path: Path,
    change: dict[str, str],
    complaint: str,
) -> None:
    arguments: dict[str, Any] = {"checkpoint_location": str(tmp_path / "checkpoint"), **change}

    with pytest.raises(InvalidInputError, match=complaint):
        write_stream(source.stream(spark), make_table(), **arguments)


def test_an_unfitting_stream_is_refused_before_it_starts(
    spark: SparkSession, make_table: Callable[..., DynamicTable], source: JsonSource, tmp_path: Path
) -> None:
    wrong = source.stream(spark).selectExpr("v as id")

    with pytest.raises(InvalidInputError, match="column 'id' is BIGINT"):
        write_stream(wrong, make_table(), checkpoint_location=str(tmp_path / "checkpoint"))
    assert not (tmp_path / "checkpoint").exists()
