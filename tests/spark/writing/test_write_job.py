"""A write as one Spark job, committed or undone by the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pyspark.accumulators import _accumulatorRegistry
from pyspark.sql import functions as sql

from storage_lib import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.spark import read, write
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.versions.numbered_rows import partitioned_by_number
from storage_lib.spark.writing.computed_input import ComputedRows
from storage_lib.spark.writing.write_job import run_write

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

GROUP = "a write that fails"


def files_of(table: DynamicTable) -> list[Path]:
    return list(Path(table.location).rglob("*.parquet"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Return once ``condition`` holds; fail after two minutes."""
    deadline = time.monotonic() + 120
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        pause.wait(0.02)


def test_a_write_returns_its_snapshot_and_releases_the_lease(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(bucket=2)

    snapshot = write(spark.range(10).selectExpr("id", "'a' v", "1 n"), table)

    assert snapshot is not None
    assert snapshot == table.inspect.latest_snapshot()
    assert table.to_arrow().num_rows == 10
    assert table.inspect.lease_holder() is None


def test_the_files_of_finished_tasks_are_deleted_if_another_task_fails(
    spark: SparkSession, make_table: Callable[..., DynamicTable], tmp_path: Path
) -> None:
    """The task that fails does so after the driver has the message of the other one."""
    table = make_table()
    may_fail = tmp_path / "may-fail"

    def wait_then_refuse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("_row_kind")[0].as_py() == "oops":
                wait_for(may_fail.exists)
            yield batch

    tasks = partitioned_by_number(spark.range(0, 2, numPartitions=1), sql.col("id").cast("int"), 2)
    rows = tasks.selectExpr("id", "cast(id as string) v", "if(id = 0, '+I', 'oops') _row_kind")
    rows = rows.mapInArrow(wait_then_refuse, rows.schema)
    write_context = table.new_write().begin(commit_user="job")
    errors: list[str] = []

    def run() -> None:
        spark.sparkContext.setJobGroup(GROUP, "")
        try:
            with storage_errors_of_spark():
                run_write(ComputedRows(rows), table, write_context, 1)
        except InvalidInputError as error:
            errors.append(str(error))

    def one_task_has_finished() -> bool:
        tracker = spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(GROUP)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage is not None and (stage.numTasks, stage.numCompletedTasks) == (2, 1) for stage in stages)

    running = threading.Thread(target=run)
    running.start()
    wait_for(one_task_has_finished)
    written = files_of(table)
    may_fail.touch()
    running.join()

    assert len(written) == 1
    assert len(errors) == 1
    assert "'oops'" in errors[0]
    assert files_of(table) == []
    assert table.inspect.latest_snapshot() is None
    assert table.inspect.lease_holder() is None


def test_a_write_without_rows_commits_nothing_and_releases_the_lease(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()

    assert write(spark.createDataFrame([], "id long, v string, n int"), table) is None

    assert table.inspect.latest_snapshot() is None
    assert table.inspect.lease_holder() is None


@pytest.mark.parametrize("name", ["a.b", "v.n", "x`y", " ", "a,b;{}()\n\t="])
def test_a_column_may_have_any_name(spark: SparkSession, make_table: Callable[..., DynamicTable], name: str) -> None:
    columns = {"id": "BIGINT NOT NULL", name: "DECIMAL(5, 2)", "v": "ROW<n INT>"}
    table = make_table(columns=columns, bucket=2)
    rows = [(number, Decimal(number), (number,)) for number in range(9)]

    write(spark.createDataFrame(rows, "id long, d decimal(5, 2), v struct<n int>").toDF("id", name, "v"), table)

    assert sorted((row["id"], row[name], (row["v"]["n"],)) for row in table.to_arrow().to_pylist()) == rows
    assert sorted((row[0], row[1], tuple(row[2])) for row in read(spark, table).collect()) == rows


def test_the_driver_does_not_keep_the_messages_of_a_write(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    write(spark.range(10).selectExpr("id", "'a' v", "1 n"), make_table())

    assert not any(each.value for each in _accumulatorRegistry.values() if isinstance(each.value, list))


def test_a_write_through_the_handle_of_a_dropped_table_is_refused(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table()
    open_catalog(table.address.warehouse).drop_table(table.name)
    again = make_table()

    with pytest.raises(NotFoundError, match="dropped"):
        write(spark.range(1).selectExpr("id", "'a' v", "1 n"), table)

    assert again.to_arrow().num_rows == 0
