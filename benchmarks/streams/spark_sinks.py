"""Measures the same rows through Spark into our table, in both modes of its log, and into Spark's own Kafka sink."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.admin import KafkaAdminClient, NewTopic
from pyspark.sql import functions as sql

from benchmarks.streams.age_observer import AgeObserver, Ages
from benchmarks.streams.generator import BIRTH, COLUMNS, GeneratorSource
from storage_lib import open_catalog
from storage_lib.spark import session, write_stream
from storage_lib.spark.stream.plan.real_time_query import CONNECTOR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib import DynamicTable

__all__ = ["Measured", "SinkBench", "spark_with_its_kafka_sink"]

BUCKETS = 4
_CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": str(BUCKETS),
    "spark.ui.showConsoleProgress": "false",
    "spark.jars.packages": CONNECTOR,
}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Ages at the reader once the stream is warm, and the median duration of a micro-batch."""

    name: str
    ages: Ages
    seconds: float
    batch_ms: float
    compactions: int = 0


@contextmanager
def spark_with_its_kafka_sink(scratch: Path, *, cores: int = 2) -> Iterator[SparkSession]:
    """Create a session with Spark's own Kafka connector, fetched by Spark's Ivy, in addition to ours."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    checkout = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join([checkout, *filter(None, [os.environ.get("PYTHONPATH")])])
    conf = {**_CONF, "spark.sql.warehouse.dir": str(scratch / "spark")}
    if "IVY_SETTINGS" in os.environ:
        conf["spark.jars.ivySettings"] = os.environ["IVY_SETTINGS"]
    spark = session("latency", master=f"local[{cores}]", conf=conf)
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(GeneratorSource)
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(frozen=True, kw_only=True)
class SinkBench:
    """Runs streams one after another on a broker, each into its own table or topic."""

    spark: SparkSession
    servers: str
    scratch: Path
    warm_up_seconds: float
    seconds: float

    def into_table(
        self, name: str, rows_per_second: int, options: dict[str, str], *, compaction: bool = False
    ) -> Measured:
        """Measure a stream into our table, including files, manifests and leases."""
        table = self._table(name, options)
        written = self._rows(rows_per_second).withColumn(BIRTH, sql.col(BIRTH).cast("timestamp_ntz"))
        before = table.inspect.snapshots().num_rows

        def start() -> Any:
            return write_stream(
                written, table, checkpoint_location=str(self.scratch / f"{name}-checkpoint"), compaction=compaction
            )

        measured = self._observed(name, start, table.options.log_kafka_topic or table.name, rows_per_second)
        kinds = table.inspect.snapshots()["commit_kind"].to_pylist()[before:]
        return Measured(
            name=name,
            ages=measured.ages,
            seconds=measured.seconds,
            batch_ms=measured.batch_ms,
            compactions=kinds.count("COMPACT"),
        )

    def into_spark_kafka(self, name: str, rows_per_second: int) -> Measured:
        """Measure Spark's Kafka sink: at least once, without files."""
        topic = f"latency-{name}"
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        admin.create_topics([NewTopic(topic, BUCKETS, 1)])
        admin.close()
        after = sql.struct(sql.col("id"), sql.unix_micros(BIRTH).alias(BIRTH), sql.col("payload"))
        change = sql.struct(
            sql.lit(None).cast("string").alias("before"), after.alias("after"), sql.lit("c").alias("op")
        )
        written = self._rows(rows_per_second).select(
            sql.to_json(sql.struct("id")).alias("key"),
            sql.to_json(change, {"ignoreNullFields": "false"}).alias("value"),
        )

        def start() -> Any:
            return (
                written.writeStream.format("kafka")
                .option("kafka.bootstrap.servers", self.servers)
                .option("topic", topic)
                .option("checkpointLocation", str(self.scratch / f"{name}-checkpoint"))
                .start()
            )

        return self._observed(name, start, topic, rows_per_second)

    def _observed(self, name: str, start: Callable[[], Any], topic: str, rows_per_second: int) -> Measured:
        every = max(1, rows_per_second // 5_000)
        with AgeObserver(self.servers, topic, BUCKETS, every=every) as observer:
            stream = start()
            try:
                _wait_until(lambda: observer.row_count > 0 or not stream.isActive, seconds=180)
                time.sleep(self.warm_up_seconds)
                since = time.time()
                ended = stream.awaitTermination(int(self.seconds))
                until = time.time()
                if ended:
                    message = f"{name}: the stream ended by itself"
                    raise RuntimeError(message)
                took = [progress["durationMs"]["triggerExecution"] for progress in stream.recentProgress[-20:]]
            finally:
                stream.stop()
            ages = observer.ages(since, until)
        return Measured(name=name, ages=ages, seconds=until - since, batch_ms=sorted(took)[len(took) // 2])

    def _rows(self, rows_per_second: int) -> DataFrame:
        return self.spark.readStream.format("born_rows").option("rowspersecond", rows_per_second).load()

    def _table(self, name: str, options: dict[str, str]) -> DynamicTable:
        catalog = open_catalog(str(self.scratch / "warehouse"), {"log.kafka.bootstrap.servers": self.servers})
        return catalog.create_table(
            f"latency.{name}", COLUMNS, primary_key=["id"], options={"bucket": str(BUCKETS), **options}
        )


def _wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            message = f"nothing came in {seconds:g} s"
            raise TimeoutError(message)
        time.sleep(0.05)
