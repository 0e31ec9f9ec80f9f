"""Compaction of a large table as a Spark job over its buckets, committed as one snapshot."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.serializers import CPickleSerializer
from pyspark.sql import functions as sql

from storage_lib.catalog.table_cache import TableKey, key_of
from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.progress.operation import operation, report_to
from storage_lib.progress.progress import ProgressOption
from storage_lib.spark.compaction.counted_buckets import CountedBuckets
from storage_lib.spark.runtime.spark_session import MAINTENANCE_POOL, scheduler_pool
from storage_lib.spark.tasks.session_kind import default_parallelism, is_connect
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.spark.versions.numbered_rows import partitioned_by_number
from storage_lib.table.maintenance.post_commit_compaction import LOST_RACE_ERRORS

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

    from storage_lib.file_store.compact import CompactionTask
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.dynamic_table import DynamicTable

_BYTES_HERE_MAX = 4 << 20
"""Files of this size are merged faster than Spark starts a Python process for a task."""


def compact(
    spark: SparkSession,
    table: DynamicTable,
    *,
    partition: Mapping[str, object] | None = None,
    full: bool = True,
    buckets: Iterable[tuple[Mapping[str, object], int]] | None = None,
    commit_user: str | None = None,
    commit_identifier: int | None = None,
    tasks_max: int | None = None,
    plan: Sequence[CompactionTask] | None = None,
    progress: ProgressOption = None,
) -> Snapshot | None:
    """Compact ``partition`` or ``buckets`` (None: all) as a Spark job; None if there was nothing to do.

    ``plan`` is the result of ``table.maintenance.plan_compaction``; with it, ``partition``, ``full`` and ``buckets``
    are ignored. ``full`` merges each bucket into one sorted run; otherwise the table's strategy chooses the runs.
    Writers continue. ``tasks_max`` limits the Spark tasks, each of which then compacts several buckets; None: one task
    per bucket. ``progress`` counts the buckets of the Spark tasks that have ended; on a terminal it shows no bar if
    Spark shows its own (``spark.ui.showConsoleProgress``).

    Buckets that another compaction or overwrite has changed meanwhile are skipped; if that applies to all of them,
    ``CommitConflictError`` is raised, and all output is deleted. Raises ``InvalidInputError`` for a bucket whose rows
    cannot be merged (a sum too large for its column), after the others were committed.
    """
    if plan is None:
        plan = table.maintenance.plan_compaction(partition=partition, full=full, buckets=buckets)
    if not plan:
        return None
    key = key_of(table)
    share_count = len(plan) if tasks_max is None else min(len(plan), tasks_max)
    # Deal the tasks out from the largest to the smallest, so that the shares have about the same size.
    tasks = sorted(plan, key=lambda task: -sum(file.file_size for file in task.unit.files))
    shares = [tasks[start::share_count] for start in range(share_count)]
    spark_shows_bar = spark.conf.get("spark.ui.showConsoleProgress", "false") == "true"
    with (
        report_to(progress),
        operation(
            "compact", table.name, total=len(plan), unit="buckets", bar_on_terminal=not spark_shows_bar
        ) as running,
    ):
        counted = CountedBuckets(running.advance)
        results = _run_job(spark, key, shares, counted)
        done = [result for result in results if isinstance(result, CommitMessage)]
        try:
            counted.check()
            running.finish()
        except BaseException:
            table.maintenance.abort_compaction(done)
            raise
    committed = table.maintenance.commit_compaction(done, commit_user=commit_user, commit_identifier=commit_identifier)
    refused = next((result for result in results if isinstance(result, InvalidInputError)), None)
    if refused is not None:
        raise refused
    return committed


def _run_job(
    spark: SparkSession, key: TableKey, shares: Sequence[Sequence[CompactionTask]], counted: CountedBuckets
) -> list[CommitMessage | InvalidInputError]:
    """Run one Spark task for each share; return the results of all buckets."""
    if is_connect(spark):
        return _run_query(spark, key, shares, counted)
    count = spark.sparkContext.accumulator(0, counted)
    try:
        with storage_errors_of_spark(), scheduler_pool(spark, MAINTENANCE_POOL):
            job = spark.sparkContext.parallelize(shares, len(shares))
            return job.flatMap(lambda share: _run(key, share, count)).collect()
    finally:
        counted.stop()


def _run_query(
    spark: SparkSession, key: TableKey, shares: Sequence[Sequence[CompactionTask]], counted: CountedBuckets
) -> list[CommitMessage | InvalidInputError]:
    """Run the shares as the tasks of a query, the only kind of job over Spark Connect. Progress comes at the end."""
    pickle: Any = CPickleSerializer()

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for share in batch.column("share").to_pylist():
                results = pickle.dumps(_run(key, pickle.loads(share)))
                yield pa.RecordBatch.from_pydict({"results": [results]})

    rows = [(number, pickle.dumps(share)) for number, share in enumerate(shares)]
    with storage_errors_of_spark():
        tasks = spark.createDataFrame(rows, "task INT, share BINARY")
        tasks = partitioned_by_number(tasks, sql.col("task"), len(shares))
        pickled = tasks.mapInArrow(run, "results BINARY").collect()
    results = [result for row in pickled for result in pickle.loads(bytes(row["results"]))]
    counted.addInPlace(0, sum(len(share) for share in shares))
    return results


def _run(
    key: TableKey, share: Sequence[CompactionTask], count: Accumulator[int] | None = None
) -> list[CommitMessage | InvalidInputError]:
    """Compact one share of the buckets, in a Spark task. Values that can't be merged fail only their own bucket."""
    results: list[CommitMessage | InvalidInputError] = []
    for task in share:
        try:
            message = key.table().maintenance.run_compaction(task)
        except InvalidInputError as error:
            results.append(error)
        else:
            if message is not None:
                results.append(message)
    if count is not None:
        count.add(len(share))
    return results


def compact_if_due(spark: SparkSession, table: DynamicTable) -> Snapshot | None:
    """Compact the runs that the table's strategy picks, on half of the cores; None also if another commit was faster.

    The other half is left to writers, because Spark cannot preempt a task that has started. Over Spark Connect, where
    the number of cores is unknown, each bucket is a task. A few small files are merged in this process.
    """
    plan = table.maintenance.plan_compaction(full=False)
    if not plan:
        return None
    try:
        if sum(file.file_size for task in plan for file in task.unit.files) <= _BYTES_HERE_MAX:
            return table.compact(full=False)
        cores = default_parallelism(spark)
        return compact(spark, table, plan=plan, tasks_max=None if cores is None else max(1, cores // 2))
    except LOST_RACE_ERRORS:
        return None


def compact_after_write(spark: SparkSession, table: DynamicTable) -> None:
    """Run ``compact_if_due`` after a write; a failure becomes a ``RuntimeWarning``, because the rows are committed."""
    try:
        compact_if_due(spark, table)
    except Exception as error:  # noqa: BLE001  of whatever kind, it must not look as if the rows were not written
        message = f"table {table.name}: the rows are committed, but the compaction after it failed: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
