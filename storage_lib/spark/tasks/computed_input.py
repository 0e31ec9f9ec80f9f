"""Computes the rows of a write before the table's lease is acquired, so that no other writer waits for the input.

The rows of a keyed table are shuffled to the tasks that own their buckets. The files of that shuffle keep what was
computed: the write reads them once, and nothing is encoded for Spark's cache, which cost more than the rest of a write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from storage_lib.spark.tasks.session_kind import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ADAPTIVE = "AdaptiveSparkPlanExec"
_OBSERVES = "CollectMetrics"


@contextmanager
def computed(df: DataFrame, *, is_shuffled: bool) -> Iterator[DataFrame]:
    """Compute ``df``, and give the body a data frame of its rows; ``is_shuffled``: its last step is a shuffle.

    The body may read the rows once without computing them again, except for those that are lost with an executor.
    """
    shuffled = _shuffled(df) if is_shuffled else None
    if shuffled is not None:
        yield shuffled
        return
    df.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        df.count()
        yield df
    finally:
        df.unpersist()


def _shuffled(df: DataFrame) -> DataFrame | None:
    """Run the query up to its last shuffle; return a data frame that reads the shuffle, or None if that is impossible.

    Adaptive execution runs a query's shuffles before it plans the rest, so asking for the rows' RDD runs them all.
    Metrics of ``observe`` are only reported by an action.
    """
    spark: SparkSession = df.sparkSession
    if is_connect(spark):
        return None
    execution: Any = df._jdf.queryExecution()  # noqa: SLF001  pyspark has no public way to the plan
    is_adaptive = execution.executedPlan().getClass().getSimpleName() == _ADAPTIVE
    if not is_adaptive or _OBSERVES in execution.analyzed().toString():
        return None
    session: Any = spark._jsparkSession  # type: ignore[attr-defined, unused-ignore]  # noqa: SLF001  likewise
    rows = session.internalCreateDataFrame(execution.toRdd(), df._jdf.schema(), False)  # noqa: SLF001  Scala's
    return DataFrame(rows, spark)
