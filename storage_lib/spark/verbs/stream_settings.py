"""Spark settings that make a stream into a table fast. Settings of the session take precedence.

Adaptive execution replans each micro-batch from the sizes of its shuffles. Our only shuffle, by bucket, sets its own
number of tasks, so replanning only adds a second plan and a second job: 15 ms of a batch of 260 ms. A query that
shuffles by itself, for example for a join, needs it: it reduces Spark's 200 tasks for a small batch to a few (0.8 s
instead of 3 s). Before Spark 4.1, no stream is replanned.

By default, Spark writes the offsets and commits of a checkpoint through Hadoop's FileContext, which runs the command
``readlink`` a dozen times for each file: 0.1 s or more of every micro-batch. The other file manager uses Java's file
API. Both write a temporary file and rename it; the default's only advantage, an atomic rename that refuses to replace
a file, exists on HDFS but not in a local directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from storage_lib.spark.data_source.unfinished_checkpoint import has_batch_to_repeat, remove_unfinished
from storage_lib.spark.runtime.spark_session import STREAM_POOL, scheduler_pool
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.versions.jvm_packages import CHECKPOINTING
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_JAVA = f"{CHECKPOINTING}.FileSystemBasedCheckpointFileManager"
_ADAPTIVE = "spark.sql.adaptive.streaming.stateless.enabled"
_ROW_BY_ROW = frozenset(
    {
        "DataSourceV2Relation",
        "DeserializeToObject",
        "EventTimeWatermark",
        "Filter",
        "Generate",
        "LocalRelation",
        "LogicalRDD",
        "LogicalRelation",
        "MapElements",
        "MapInArrow",
        "MapInPandas",
        "MapPartitions",
        "OneRowRelation",
        "Project",
        "PythonMapInArrow",
        "Range",
        "ResolvedHint",
        "SerializeFromObject",
        "StreamingRelation",
        "StreamingRelationV2",
        "SubqueryAlias",
        "TypedFilter",
        "Union",
        "View",
    }
)
"""Plan nodes for which Spark never shuffles. It may shuffle for any other node, including ones unknown to us."""


def stream_start(
    writer: DataStreamWriter, df: DataFrame, checkpoint_location: str, *, available_now: bool
) -> Callable[[], StreamingQuery]:
    """Return a function that starts ``writer``, a stream of ``df``, with these settings, in the pool of streams.

    It first removes what a killed driver has left of a first micro-batch, from which Spark would not start. Before
    Spark 4.2, a run with ``available_now`` has one micro-batch; if that repeats one that a killed driver has left, the
    function waits for its end, and starts the run of the newer rows.
    """
    spark = df.sparkSession
    writer = writer.option("checkpointLocation", checkpoint_location)

    def start_once() -> StreamingQuery:
        with active_session(spark), scheduler_pool(spark, STREAM_POOL), quick_batches(df, checkpoint_location):
            return writer.start()

    def start() -> StreamingQuery:
        remove_unfinished(spark, checkpoint_location)
        has_one_batch = available_now and not SparkFeature.ADMISSION_CONTROL.is_here
        only_repeats = has_one_batch and has_batch_to_repeat(spark, checkpoint_location)
        query = start_once()
        if only_repeats:
            # The caller sees the error of a query that has failed when it waits for its end.
            with suppress(PySparkException):
                query.awaitTermination()
            if query.exception() is None:
                return start_once()
        return query

    return start


def triggered(writer: DataStreamWriter, trigger_seconds: float, *, available_now: bool) -> DataStreamWriter:
    """Return ``writer`` with its trigger, as for ``write_stream``."""
    if available_now:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{round(trigger_seconds * 1000)} milliseconds")


@contextmanager
def quick_batches(df: DataFrame, checkpoint_location: str) -> Iterator[None]:
    """Apply the settings while the body starts a stream of ``df``; the stream keeps the settings of its start."""
    spark = df.sparkSession
    wanted = {} if may_shuffle(df) else {_ADAPTIVE: "false"}
    if _is_local(spark, checkpoint_location):
        wanted[_MANAGER] = _BY_JAVA
    ours = {key: value for key, value in wanted.items() if spark.conf.get(key, None) is None}
    try:
        for key, value in ours.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key in ours:
            spark.conf.unset(key)


def may_shuffle(df: DataFrame) -> bool:
    """Return whether Spark may shuffle for the query itself. A join with a broadcast hint does not count."""
    # The plan of a data frame can be reached only through pyspark's gateway.
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001
    return not plan.subqueriesAll().isEmpty() or _any_may_shuffle(plan)


def _any_may_shuffle(plan: Any) -> bool:
    children = [plan.children().apply(index) for index in range(plan.children().size())]
    is_known = plan.nodeName() in _ROW_BY_ROW or (plan.nodeName() == "Join" and any(map(_is_broadcast, children)))
    return not is_known or any(map(_any_may_shuffle, children))


def _is_broadcast(plan: Any) -> bool:
    return plan.nodeName() == "ResolvedHint" and "strategy=broadcast" in plan.hints().toString()


def _is_local(spark: SparkSession, location: str) -> bool:
    # The JVM's file system classes are only reachable through pyspark's gateway.
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    scheme = jvm.org.apache.hadoop.fs.Path(location).getFileSystem(configuration).getUri().getScheme()
    return str(scheme) == "file"
