"""Latency from a row's creation to a reader of the log, through a topic and Spark, with and without real-time mode.

    python -m benchmarks.real_time [--seconds 120] [--rows-per-second 5000] [--cores 3] [--parts real-time batches]

A process writes JSON rows into a topic with two partitions; Spark reads the topic with its own Kafka source and writes
into our table, or with its bare Kafka sink into a topic; a librdkafka consumer reads the result. Broker, writer, Spark
and reader all run on this machine. The measured period contains commits of the source's offsets, which stop a real-time
stream for a moment: with the default interval one a minute.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka.admin import KafkaAdminClient, NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from pyspark.sql import functions as sql

from benchmarks.streams.age_observer import AgeObserver, Ages
from benchmarks.streams.generator import BIRTH, COLUMNS
from benchmarks.streams.spark_sinks import BUCKETS, spark_with_its_kafka_sink
from local_kafka import LocalKafka
from storage_lib import open_catalog
from storage_lib.spark import write_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib import DynamicTable

RESULTS = Path(__file__).parent / "results"
SOURCE_PARTITIONS = 2
CHECKPOINT_SECONDS = 60
START_SECONDS_MAX = 180
_DECODED_EVERY = 10
"""Every tenth record is decoded: the reader shares two processors with the broker, the writer and Spark."""
PERCENTS = (50, 99)
_BROKER = ("-XX:TieredStopAtLevel=4", "-Xmx1g")
"""The tests' broker is compiled for a quick start only, and would need a whole core for these rows."""
PARTS = ("real-time", "batches")
PEER = "Spark's Kafka sink in real-time mode"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Runs streams one after another, each from its own topic."""

    spark: SparkSession
    servers: str
    scratch: Path
    rows_per_second: int
    warm_up_seconds: float
    seconds: float

    def into_table(self, name: str, *, real_time: bool) -> Ages:
        """Measure our table: log and files."""
        table = self._table(name)
        written = self._rows(name).withColumn(BIRTH, sql.timestamp_micros(BIRTH).cast("timestamp_ntz"))

        def start() -> Any:
            return write_stream(
                written, table, checkpoint_location=str(self.scratch / f"{name}-checkpoint"), real_time=real_time
            )

        return self._observed(name, start, table.options.log_kafka_topic or table.name)

    def into_topic(self, name: str, *, real_time: bool) -> Ages:
        """Measure Spark's sink: the same envelope, no files."""
        self._new_topic(name, BUCKETS)
        after = sql.struct(*COLUMNS.names)
        nothing = sql.lit(None).cast("string")
        change = sql.struct(nothing.alias("before"), after.alias("after"), sql.lit("c").alias("op"))
        records = self._rows(name).select(
            sql.to_json(sql.struct("id")).alias("key"),
            sql.to_json(change, {"ignoreNullFields": "false"}).alias("value"),
        )
        writer = records.writeStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", name).option("checkpointLocation", str(self.scratch / f"{name}-checkpoint"))
        if real_time:
            trigger = {"realTime": f"{CHECKPOINT_SECONDS} seconds"}
            writer = writer.outputMode("update").trigger(**trigger)
        return self._observed(name, writer.start, name)

    def _observed(self, name: str, start: Callable[[], Any], topic: str) -> Ages:
        with AgeObserver(self.servers, topic, BUCKETS, every=_DECODED_EVERY) as observer, self._generator(name):
            stream = start()
            try:
                _wait_until(lambda: observer.row_count > 0 or not stream.isActive)
                time.sleep(self.warm_up_seconds)
                since = time.time()
                if stream.awaitTermination(int(self.seconds)):
                    message = f"{name}: the stream ended by itself"
                    raise RuntimeError(message)
                until = time.time()
            finally:
                stream.stop()
            return observer.ages(since, until)

    def _rows(self, name: str) -> DataFrame:
        self._new_topic(f"{name}-source", SOURCE_PARTITIONS)
        source = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        records = source.option("subscribe", f"{name}-source").load()
        row = sql.from_json(sql.col("value").cast("string"), f"id BIGINT, {BIRTH} BIGINT, payload STRING")
        return records.select(row.alias("row")).select("row.*")

    @contextmanager
    def _generator(self, name: str) -> Iterator[None]:
        words = (self.servers, f"{name}-source", str(SOURCE_PARTITIONS), str(self.rows_per_second))
        program = [sys.executable, "-m", "benchmarks.streams.kafka_generator", *words]
        with subprocess.Popen(program, stdin=subprocess.PIPE) as process:
            try:
                yield
            finally:
                process.communicate()

    def _new_topic(self, name: str, partitions: int) -> None:
        admin = KafkaAdminClient(bootstrap_servers=self.servers)
        admin.create_topics([NewTopic(name, partitions, 1)])
        admin.close()

    def _table(self, name: str) -> DynamicTable:
        catalog = open_catalog(str(self.scratch / "warehouse"), {"log.kafka.bootstrap.servers": self.servers})
        options = {"bucket": str(BUCKETS), "log.consistency": "eventual", "log.tier-interval": "60 s"}
        return catalog.create_table(f"real_time.{name}", COLUMNS, primary_key=["id"], options=options)


def main() -> None:
    """Run the benchmark, print the figures, and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--warm-up-seconds", type=float, default=90)
    parser.add_argument("--rows-per-second", type=int, default=5_000)
    parser.add_argument("--cores", type=int, default=3, help="of Spark; real-time tasks hold one per source partition")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="real-time-"))
    records: list[dict[str, object]] = []
    try:
        with (
            LocalKafka(scratch / "kafka", jvm_options=_BROKER) as broker,
            spark_with_its_kafka_sink(scratch, cores=arguments.cores) as spark,
        ):
            bench = Bench(
                spark=spark,
                servers=broker.bootstrap_servers,
                scratch=scratch,
                rows_per_second=arguments.rows_per_second,
                warm_up_seconds=arguments.warm_up_seconds,
                seconds=arguments.seconds,
            )
            for record in _measured(bench, arguments.parts):
                print(json.dumps(record), flush=True)
                records.append(record)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if set(arguments.parts) == set(PARTS):
        (arguments.results / "real_time.json").write_text(json.dumps(records, indent=1) + "\n")


def _measured(bench: Bench, parts: Sequence[str]) -> Iterator[dict[str, object]]:
    peer = None
    if "real-time" in parts:
        peer = bench.into_topic("bare_real_time", real_time=True)
        yield from _records(bench, PEER, peer)
        yield from _records(bench, "write_stream(..., real_time=True)", bench.into_table("ours", real_time=True), peer)
    if "batches" in parts:
        batches = bench.into_topic("bare_batches", real_time=False)
        yield from _records(bench, "Spark's Kafka sink in micro-batches", batches, peer)
        yield from _records(bench, "write_stream(...)", bench.into_table("ours_in_batches", real_time=False), peer)


def _records(bench: Bench, name: str, ages: Ages, peer: Ages | None = None) -> Iterator[dict[str, object]]:
    for percent in PERCENTS:
        value = ages.percentile(percent)
        ratio = None if peer is None else round(value / peer.percentile(percent), 3)
        yield {
            "name": f"{name}, age p{percent}",
            "value": round(1000 * value, 2),
            "unit": "ms",
            "ratio_to": None if peer is None else f"{PEER}, age p{percent}",
            "ratio": ratio,
        }
    rate = ages.rows / bench.seconds
    yield {"name": f"{name}, rows read", "value": round(rate, 1), "unit": "rows/s", "ratio_to": None, "ratio": None}


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            message = f"no row came in {START_SECONDS_MAX} s"
            raise TimeoutError(message)
        time.sleep(0.05)


if __name__ == "__main__":
    main()
