"""The Kafka partitions that a query reads, and the cores that a real-time stream needs for them.

Spark reads each partition in a task that holds a core until the next checkpoint. A task without a core gets its turn
when that time is over, reads nothing, and the stream continues without its partition, and without an error.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from storage_lib.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from storage_lib.io.environment import Clock

_PREFIX = "kafka."
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_EXECUTORS_SECONDS = 30.0
_LOOK_SECONDS = 0.5


class CoresInUse:
    """The cores that the running real-time streams of this process hold."""

    def __init__(self) -> None:
        self._streams: list[tuple[StreamingQuery, int]] = []

    def add(self, query: StreamingQuery, cores: int) -> None:
        """Count the cores of a stream until it ends."""
        self._streams.append((query, cores))

    def count(self) -> int:
        """Return the number of cores that are held."""
        self._streams = [(query, cores) for query, cores in self._streams if query.isActive]
        return sum(cores for _, cores in self._streams)


def refuse_too_few_cores(spark: SparkSession, table: str, clock: Clock, *, partitions: int, in_use: int) -> None:
    """Raise ``InvalidInputError`` if the session has fewer free cores than the source has partitions.

    Waits for the executors of a cluster. A session with dynamic allocation gets executors for waiting tasks.
    """
    if spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    is_local = (spark.sparkContext.master or "").startswith("local")
    deadline = clock.monotonic() + (0 if is_local else _EXECUTORS_SECONDS)
    while _cores(spark) - in_use < partitions:
        if clock.monotonic() >= deadline:
            others = f", of which other real-time streams hold {in_use}" if in_use else ""
            message = (
                f"table {table}: real_time=True needs a core for each partition of its source, {partitions}, but the "
                f"session has {_cores(spark)}{others}; the partitions without a core would never be read. Start the "
                f"session with more cores, such as master='local[{partitions + in_use + 1}]', or more executors"
            )
            raise InvalidInputError(message)
        clock.sleep(_LOOK_SECONDS)


def partitions_of(df: DataFrame, table: str) -> int:
    """Return the number of partitions of the topics that a query for ``table`` reads with Spark's Kafka source.

    Raises ``UnavailableError`` if the source's brokers don't answer.
    """
    plan: Any = df._jdf.queryExecution().analyzed()  # noqa: SLF001  pyspark offers no other way
    jvm: Any = df.sparkSession.sparkContext._jvm  # noqa: SLF001
    leaves = plan.collectLeaves()
    streams = [leaf for leaf in map(leaves.apply, range(leaves.size())) if leaf.isStreaming()]
    try:
        return sum(_partitions(jvm, leaf.extraOptions().asCaseSensitiveMap()) for leaf in streams)
    except Py4JJavaError as error:
        message = (
            f"table {table}: the partitions of the stream's source can't be looked up: "
            f"{error.java_exception.getMessage()}. Check its options kafka.*, and that its brokers run"
        )
        raise UnavailableError(message) from error


def _partitions(jvm: Any, options: Any) -> int:
    given = {str(key).lower(): str(options[key]) for key in options}
    if "assign" in given:
        return sum(len(partitions) for partitions in json.loads(given["assign"]).values())
    properties = jvm.java.util.HashMap()
    for key in options:
        if str(key).lower().startswith(_PREFIX):
            properties.put(str(key)[len(_PREFIX) :], options[key])
    properties.put("allow.auto.create.topics", "false")
    properties.put("key.deserializer", _BYTES)
    properties.put("value.deserializer", _BYTES)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
    try:
        if "subscribe" in given:
            topics = [topic.strip() for topic in given["subscribe"].split(",")]
        else:
            pattern = re.compile(given["subscribepattern"])
            topics = [str(topic) for topic in consumer.listTopics() if pattern.fullmatch(str(topic))]
        return sum(len(consumer.partitionsFor(topic)) for topic in topics)
    finally:
        consumer.close()


def _cores(spark: SparkSession) -> int:
    # The number of tasks that run at the same time is known to the JVM only.
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001
    return int(context.maxNumConcurrentTasks(context.resourceProfileManager().defaultResourceProfile()))
