"""Compaction as a Spark job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError
from storage_lib.spark import compact, read
from tests.support.every_file import data_files
from tests.support.recorded_progress import RecordedProgress
from tests.support.whole_rows import whole_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark


def test_each_bucket_becomes_one_run_and_the_content_stays(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=3)
    for version in range(4):
        table.append(whole_rows(table, {"id": list(range(30)), "v": [f"v{version}"] * 30}))
    assert table.inspect.files().num_rows == 12

    snapshot = compact(spark, table)

    assert snapshot is not None
    assert snapshot.commit_kind == "COMPACT"
    assert table.inspect.files().num_rows == 3
    assert {row.v for row in read(spark, table).collect()} == {"v3"}
    assert read(spark, table).count() == 30


def test_only_the_buckets_that_are_named_are_compacted(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=3)
    for version in range(2):
        table.append(whole_rows(table, {"id": list(range(30)), "v": [f"v{version}"] * 30}))

    assert compact(spark, table, buckets=[({}, 0), ({}, 2)]) is not None

    assert Counter(table.inspect.files()["bucket"].to_pylist()) == {0: 1, 1: 2, 2: 1}


def test_there_is_nothing_to_compact_twice(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> None:
    table = make_table()
    for _ in range(2):
        table.append(whole_rows(table, {"id": [1]}))

    assert compact(spark, table) is not None
    assert compact(spark, table) is None


def test_no_more_tasks_than_allowed_do_the_whole_work(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=3)
    for version in range(2):
        table.append(whole_rows(table, {"id": list(range(30)), "v": [f"v{version}"] * 30}))

    spark.sparkContext.setJobGroup("two-tasks", "compaction")
    compact(spark, table, tasks_max=2)

    tracker = spark.sparkContext.statusTracker()
    (job,) = tracker.getJobIdsForGroup("two-tasks")
    info = tracker.getJobInfo(job)
    assert info is not None
    assert [tracker.getStageInfo(stage).numTasks for stage in info.stageIds] == [2]  # type: ignore[union-attr]
    assert table.inspect.files().num_rows == 3
    assert {row.v for row in read(spark, table).collect()} == {"v1"}


def test_a_bucket_that_can_not_be_merged_hinders_no_other(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    options = {"merge_engine": "aggregation", "fields.n.aggregate-function": "sum", "write_only": "true"}
    table = make_table(bucket=4, **options)
    for _ in range(2):
        table.append(whole_rows(table, {"id": list(range(20)), "n": [2**31 - 1] + [1] * 19}))

    with pytest.raises(InvalidInputError, match="'n'"):
        compact(spark, table)

    counts = Counter(table.inspect.files().column("bucket").to_pylist())
    assert sorted(counts.values()) == [1, 1, 1, 2]


def two_files_in_each_bucket(make_table: Callable[..., DynamicTable]) -> DynamicTable:
    table = make_table(bucket=3, write_only="true")
    for version in range(2):
        table.append(whole_rows(table, {"id": list(range(30)), "v": [f"v{version}"] * 30}))
    return table


@pytest.mark.parametrize("tasks_max", [None, 2])
def test_progress_counts_the_buckets_of_the_tasks_that_have_ended(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tasks_max: int | None
) -> None:
    table, told = two_files_in_each_bucket(make_table), RecordedProgress()

    assert compact(spark, table, tasks_max=tasks_max, progress=told) is not None

    assert told.operations == [("compact", 3, "buckets")]
    steps = {report.done for report in told.reports}
    assert steps == {0, 1, 2, 3} if tasks_max is None else steps in ({0, 1, 3}, {0, 2, 3})


@pytest.mark.parametrize("fails_at", [1, 3])
def test_a_callback_that_fails_keeps_the_job_from_being_committed_and_leaves_no_file(
    spark: SparkSession, make_table: Callable[..., DynamicTable], fails_at: int
) -> None:
    table = two_files_in_each_bucket(make_table)
    before = data_files(table)

    with pytest.raises(ZeroDivisionError):
        compact(spark, table, progress=RecordedProgress(fails_at=fails_at, error=ZeroDivisionError()))

    assert data_files(table) == before
    assert table.inspect.latest_snapshot_id() == 2
    assert compact(spark, table, progress=RecordedProgress()) is not None, "the session works as before"
