"""Refuses queries that Spark's real-time mode does not run, and sessions that lack its Kafka connector.

Spark itself refuses most of them only after the query has started, by names of its classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from storage_lib.errors import InvalidInputError
from storage_lib.spark.data_source import changelog_source, statement_options
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
"""Newest release of Spark's Kafka connector; it runs on Spark 4.3."""
_CONNECTOR_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_KAFKA = "kafka"
_OURS = (statement_options.SOURCE_NAME, changelog_source.SOURCE_NAME)
_RUNS = frozenset(
    {
        "CollectMetrics",
        "EventTimeWatermark",
        "Expand",
        "Filter",
        "Generate",
        "Project",
        "ResolvedHint",
        "SubqueryAlias",
        "Union",
        "View",
    }
)
_SHUFFLING = frozenset({"RepartitionByExpression"})
_STATEFUL = frozenset({"Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct"})
_OF_PYTHON = ("Pandas", "Python", "PySpark", "Arrow")
_INTERVAL_MIN = "spark.sql.streaming.realTimeMode.minBatchDuration"
_INTERVAL_MIN_MS = 5_000


def refuse_without_connector(spark: SparkSession, table: str) -> None:
    """Raise ``InvalidInputError`` if the session can't load Spark's Kafka connector."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  pyspark offers no other way
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    # A class that is not there would be an exception of the JVM; a resource is None.
    if loader.getResource(f"{_CONNECTOR_CLASS.replace('.', '/')}.class") is None:
        message = (
            f"table {table}: real_time=True writes with Spark's Kafka connector, which this session doesn't have. "
            f'Start it with session(conf={{"spark.jars.packages": "{CONNECTOR}"}}), or name its jars in spark.jars'
        )
        raise InvalidInputError(message)


def refuse_interval(spark: SparkSession, table: str, seconds: float) -> None:
    """Raise ``InvalidInputError`` for an interval between checkpoints that is shorter than Spark allows."""
    text = spark.conf.get(_INTERVAL_MIN, None)
    least = int(text) / 1000 if text is not None and text.isdigit() else _INTERVAL_MIN_MS / 1000
    if seconds < least:
        message = (
            f"table {table}: trigger_seconds={seconds:g} is too short: with real_time=True it is the time between two "
            f"checkpoints, not the latency, and Spark takes {least:g} s or more ({_INTERVAL_MIN}). Leave it out for 60"
        )
        raise InvalidInputError(message)


def refuse_query(df: DataFrame, table: str, *, output_mode: str) -> None:
    """Raise ``InvalidInputError``, with the remedy, for a query that can't run in Spark's real-time mode."""
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001  pyspark offers no other way
    function = next(_functions_of_python(plan), None)
    if function is not None:
        reason = f"the query calls {function}, which runs in a Python process"
        raise _refused(table, reason, "Use Spark's own functions (pyspark.sql.functions)")
    sources: list[str] = []
    for node in _streaming_nodes(plan):
        name = str(node.getClass().getSimpleName())
        if node.children().size() == 0:
            sources.append(_checked_source(node, name, table))
        else:
            _refuse_operation(node, name, table, output_mode)
    if len(set(sources)) < len(sources):
        reason = "the query reads the same topics twice"
        raise _refused(table, reason, "Read them once, or run one stream for each")


def _refuse_operation(node: Any, name: str, table: str, output_mode: str) -> None:
    is_stateful = name in _STATEFUL or "WithState" in name
    if any(word in name for word in _OF_PYTHON):
        raise _refused(table, f"{name} runs in a Python process", "Use Spark's own functions")
    if name == "Join":
        _refuse_join(node, table)
    elif is_stateful and output_mode != "update":
        reason = f"{name} combines rows, and Spark emits its results as they change"
        raise _refused(table, reason, "Say so: output_mode='update'")
    elif is_stateful or name in _SHUFFLING:
        SparkFeature.REAL_TIME_SHUFFLES.require(f"table {table}: {name}", "Write without real_time=True")
    elif name not in _RUNS:
        raise _refused(table, f"Spark's real-time mode doesn't run {name}", "Leave it out of the query")


def _checked_source(node: Any, name: str, table: str) -> str:
    source = str(node.sourceName()) if name.startswith("StreamingRelation") else name
    if source in _OURS:
        reason = "the query reads a stream of this library, which reads it in a Python process"
        raise _refused(table, reason, "Read the topic with Spark's own source: spark.readStream.format('kafka')")
    if source != _KAFKA:
        reason = f"the query reads a stream of {source}, and Spark's real-time mode reads Kafka only"
        raise _refused(table, reason, "Put the rows into a topic first")
    # The same reader used twice keeps its provider, but gets other columns.
    return f"{node.source().toString()} {node.extraOptions().toString()}"


def _refuse_join(node: Any, table: str) -> None:
    sides = [node.left(), node.right()]
    fixed = [side for side in sides if not side.isStreaming()]
    if not fixed:
        reason = "the query joins two streams"
        raise _refused(table, reason, "Join one stream with tables")
    if not any(
        "strategy=broadcast" in str(side.hints().toString()) for side in map(_hinted, fixed) if side is not None
    ):
        reason = "the query joins a table that Spark may shuffle"
        raise _refused(table, reason, "Join it as pyspark.sql.functions.broadcast(table)")


def _hinted(plan: Any) -> Any:
    while plan.nodeName() == "SubqueryAlias":
        plan = plan.children().apply(0)
    return plan if plan.nodeName() == "ResolvedHint" else None


def _streaming_nodes(plan: Any) -> Iterator[Any]:
    """Yield the nodes below which there is a stream, from the top."""
    if not plan.isStreaming():
        return
    yield plan
    for place in range(plan.children().size()):
        yield from _streaming_nodes(plan.children().apply(place))


def _functions_of_python(plan: Any) -> Iterator[str]:
    for node in _streaming_nodes(plan):
        expressions = node.expressions()
        for place in range(expressions.size()):
            yield from _python_in(expressions.apply(place))


def _python_in(expression: Any) -> Iterator[str]:
    if expression.getClass().getSimpleName().startswith("Python"):
        yield f"{expression.name()}()"
    for place in range(expression.children().size()):
        yield from _python_in(expression.children().apply(place))


def _refused(table: str, reason: str, remedy: str) -> InvalidInputError:
    return InvalidInputError(f"table {table}: real_time=True: {reason}. {remedy}, or write without real_time=True")
