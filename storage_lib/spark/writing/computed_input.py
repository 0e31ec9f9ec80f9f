"""Computes the rows of a write before the table's lease is acquired, so that no other writer waits for the input.

The rows of a keyed table are shuffled to the tasks that own their buckets. The files of that shuffle keep what was
computed: the write reads them once, and nothing is encoded for Spark's cache, which cost more than the rest of a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.types.unscaled_decimals import Digits, with_numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADAPTIVE = "AdaptiveSparkPlanExec"
_RESULT_STAGE = "ResultQueryStageExec"
_SHUFFLE_STAGE = "ShuffleQueryStageExec"
_NO_ROWS = "EmptyRelationExec"
_OBSERVES = "CollectMetrics"

_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_NO_LIMIT = str(2**31 - 1)
_MANY_ROWS = 100_000
_ONE_BATCH_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """Rows of a write. ``decimals``: positions where ``df`` has unscaled values in place of decimals of these digits.

    ``unscaled_decimals.with_decimals`` restores the decimals in the tasks. ``row_count`` and ``size_bytes``: None
    if Spark did not count.
    """

    df: DataFrame
    decimals: Mapping[int, Digits] = field(default_factory=dict)
    row_count: int | None = None
    size_bytes: int | None = None


@contextmanager
def computed(df: DataFrame, *, is_shuffled: bool) -> Iterator[ComputedRows]:
    """Compute ``df``, and give the body its rows; ``is_shuffled``: its last step is a shuffle.

    The body may read the rows once without computing them again, except for those that are lost with an executor.
    """
    shuffled = _shuffled(df) if is_shuffled else None
    if shuffled is not None:
        yield shuffled
        return
    if df.storageLevel != StorageLevel.NONE:
        # The caller has cached these rows, and may use them again.
        df.count()
        yield ComputedRows(df)
        return
    df.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield ComputedRows(df, row_count=df.count())
    finally:
        df.unpersist()


def _shuffled(df: DataFrame) -> ComputedRows | None:
    """Run the query up to its last shuffle; return rows that are read from the shuffle, or None if that is impossible.

    Adaptive execution runs a query's shuffles before it plans the rest, so asking for the rows' RDD runs them all.
    Metrics of ``observe`` are only reported by an action.
    """
    spark: SparkSession = df.sparkSession
    if is_connect(spark):
        return None
    execution: Any = df._jdf.queryExecution()  # noqa: SLF001  pyspark has no public way to the plan
    adaptive = execution.executedPlan()
    if _kind(adaptive) != _ADAPTIVE or _OBSERVES in execution.analyzed().toString():
        return None
    session: Any = spark._jsparkSession  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001  likewise
    rdd = execution.toRdd()
    stage = adaptive.executedPlan()
    if _kind(stage) == _RESULT_STAGE:
        stage = stage.plan()
    if _kind(stage) != _SHUFFLE_STAGE:
        plain = DataFrame(session.internalCreateDataFrame(rdd, df._jdf.schema(), False), spark)  # noqa: SLF001
        # Adaptive execution replaces a plan of which it has found that it has no rows.
        return ComputedRows(plain, row_count=0 if _kind(stage) == _NO_ROWS else None)
    # The rows of a shuffle are UnsafeRows.
    numbers, decimals = with_numbers(df.schema)
    kind = session.parseDataType(numbers.json()) if decimals else df._jdf.schema()  # noqa: SLF001
    sender = _without_limit(spark, session, stage)
    statistics = stage.getRuntimeStatistics()
    counted = statistics.rowCount()
    count = int(counted.get()) if counted.isDefined() else None
    # Spark has an integer of any size, as text.
    size = int(str(statistics.sizeInBytes()))
    return ComputedRows(DataFrame(sender.internalCreateDataFrame(rdd, kind, False), spark), decimals, count, size)


def _without_limit(spark: SparkSession, session: Any, stage: Any) -> Any:
    """Return a copy of the session that does not limit the bytes of a batch for Python, if no batch can be too large.

    To keep the limit, Spark measures all columns of a batch after each row, which takes longer than to convert the
    rows. A batch of all rows has less than the 2 GiB to which a column of Arrow can grow.
    """
    statistics = stage.getRuntimeStatistics()
    rows = statistics.rowCount()
    is_small = statistics.sizeInBytes() <= _ONE_BATCH_BYTES_MAX
    if (
        not is_small
        or not rows.isDefined()
        or rows.get() < _MANY_ROWS
        or spark.conf.get(_BATCH_BYTES, None) is not None
    ):
        return session
    copy = session.cloneSession()
    copy.conf().set(_BATCH_BYTES, _NO_LIMIT)
    return copy


def _kind(plan: Any) -> str:
    return str(plan.getClass().getSimpleName())
