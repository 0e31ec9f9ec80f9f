"""Spark's settings under which a stream into a table is quick; what the session says itself wins.

Spark replans each micro-batch as it learns the sizes of what is shuffled ("adaptive"). Our one shuffle, by bucket,
has its number of tasks, so nothing comes of it but a second plan and a second job: 15 ms of a batch of 260. A query
that shuffles by itself, for a join say, needs it: Spark's 200 tasks for a small batch become few (0.8 s instead of 3).

Spark writes a stream's own notes, offsets and commits, through Hadoop's FileContext by default, which starts the
command ``readlink`` a dozen times for each file: a tenth of a second and more of every micro-batch. Its other manager
asks Java. Both write aside and rename; what the default has over the other, an atomic rename that refuses to replace,
HDFS offers and a local directory does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_JAVA = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
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
"""Parts of a query that Spark never shuffles for. Of others, and of those that we do not know, it may."""


@contextmanager
def quick_batches(df: DataFrame, checkpoint_location: str) -> Iterator[None]:
    """A stream of ``df``, started in the body with that checkpoint; it keeps the settings it was started with."""
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
    """Whether Spark may shuffle for the query itself; not for a join with what is to be broadcast."""
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
