"""End-to-end latency of committed rows: through Spark into our table, compared with Spark's Kafka sink.

    python -m benchmarks.latency [--seconds 40] [--sustained-seconds 300]
        [--parts spark sustained direct leases s3-leases]

Broker, Spark with two cores and the reader (librdkafka) all run on this machine. A row's age counts from its creation
in Spark's source; ages are measured once a stream is warm. Spark's own sink writes the same rows to a topic at least
once, without files; ours writes files, manifests and snapshots as well, exactly once.
``s3-leases`` needs ``make servers``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from benchmarks.peers.bars import bars
from benchmarks.streams.direct_writer import (
    ages_of_direct_writes,
    new_table,
    seconds_of_a_lease,
    seconds_until_a_successor_commits,
)
from benchmarks.streams.spark_sinks import Measured, SinkBench, spark_with_its_kafka_sink
from local_kafka import LocalKafka
from local_s3 import LocalS3
from storage_lib import DynamicTable

RESULTS = Path(__file__).parent / "results"
ROWS_PER_SECOND, MANY_ROWS_PER_SECOND = 5_000, 50_000
DIRECT_BATCHES, TURNS = 200, 200
PARTS = ("spark", "sustained", "direct", "leases", "s3-leases")
EVENTUAL = {"log.consistency": "eventual", "log.tier-interval": "60 s"}
PEER = "Spark's Kafka sink"


def main() -> None:
    """Run the benchmark, print the figures, and store those of the parts that ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--warm-up-seconds", type=float, default=20)
    parser.add_argument("--sustained-seconds", type=float, default=300)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="latency-"))
    records: list[dict[str, object]] = []
    try:
        with LocalKafka(scratch / "kafka") as broker:
            for record in _measured(broker.bootstrap_servers, scratch, arguments):
                print(json.dumps(record), flush=True)
                records.append(record)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _keep(records)


def _measured(servers: str, scratch: Path, arguments: argparse.Namespace) -> Iterator[dict[str, object]]:
    warehouse = str(scratch / "warehouse")
    if {"spark", "sustained"} & set(arguments.parts):
        with spark_with_its_kafka_sink(scratch) as spark:

            def bench(seconds: float) -> SinkBench:
                return SinkBench(
                    spark=spark,
                    servers=servers,
                    scratch=scratch,
                    warm_up_seconds=arguments.warm_up_seconds,
                    seconds=seconds,
                )

            if "spark" in arguments.parts:
                yield from _through_spark(bench(arguments.seconds))
            if "sustained" in arguments.parts:
                measured = bench(arguments.sustained_seconds).into_table(
                    "sustained", MANY_ROWS_PER_SECOND, {}, compaction=True
                )
                yield from _of_stream(f"transactional, {MANY_ROWS_PER_SECOND:,} rows/s, with compaction", measured)
    if "direct" in arguments.parts:
        for name, options in (("transactional", {}), ("eventual", EVENTUAL)):
            ages, took = ages_of_direct_writes(servers, warehouse, batches=DIRECT_BATCHES, options=options)
            yield _record(f"direct writer, {name}, age p50", 1000 * ages.percentile(50), "ms")
            yield _record(f"direct writer, {name}, age p99", 1000 * ages.percentile(99), "ms")
            yield _record(f"direct writer, {name}, append p50", 1000 * statistics.median(took), "ms")
    if "leases" in arguments.parts:
        yield from _of_leases(new_table(None, warehouse, {}), "local disk")
        seconds = seconds_until_a_successor_commits(servers, warehouse, lease_timeout="30 s")
        yield _record("from a killed writer to the next commit, lease.timeout 30 s", seconds, "s")
    if "s3-leases" in arguments.parts:
        server = LocalS3(scratch / "s3")
        server.start()
        try:
            server.create_bucket("bucket")
            yield from _of_leases(new_table(None, "s3://bucket/warehouse", {}, server.options), "S3")
        finally:
            server.stop()


def _of_leases(table: DynamicTable, store: str) -> Iterator[dict[str, object]]:
    took = seconds_of_a_lease(table, TURNS)
    yield _record(f"lease acquired and released, {store}, p50", 1000 * statistics.median(took), "ms")
    yield _record(f"lease acquired and released, {store}, p99", 1000 * float(np.percentile(took, 99)), "ms")


def _through_spark(bench: SinkBench) -> Iterator[dict[str, object]]:
    peer = bench.into_spark_kafka("peer", ROWS_PER_SECOND)
    yield from _of_stream(PEER, peer)
    yield from _of_stream("transactional", bench.into_table("transactional", ROWS_PER_SECOND, {}), peer)
    yield from _of_stream("eventual", bench.into_table("eventual", ROWS_PER_SECOND, EVENTUAL), peer)


def _of_stream(name: str, measured: Measured, peer: Measured | None = None) -> Iterator[dict[str, object]]:
    for percent in (50, 99):
        age = measured.ages.percentile(percent)
        ratio_to = None if peer is None else f"{PEER}, age p{percent}"
        other = 1.0 if peer is None else peer.ages.percentile(percent)
        yield _record(f"{name}, age p{percent}", age, "s", ratio_to, other)
    yield _record(f"{name}, rows read", measured.ages.rows / measured.seconds, "rows/s")
    yield _record(f"{name}, one micro-batch", measured.batch_ms, "ms")
    if measured.compactions:
        yield _record(f"{name}, compactions", measured.compactions, "snapshots")


def _record(name: str, value: float, unit: str, ratio_to: str | None = None, other: float = 1.0) -> dict[str, object]:
    ratio = None if ratio_to is None else round(value / other, 3)
    return {"name": name, "value": round(value, 3), "unit": unit, "ratio_to": ratio_to, "ratio": ratio}


def _keep(records: list[dict[str, object]]) -> None:
    """Store the figures, keeping the stored ones of parts that did not run."""
    path = RESULTS / "latency.json"
    before = json.loads(path.read_text()) if path.exists() else []
    kept = {str(record["name"]): record for record in [*before, *records]}
    path.write_text(json.dumps(list(kept.values()), indent=1) + "\n")
    factor = {"s": 1000.0, "ms": 1.0}
    ages = {
        name: float(str(record["value"])) * factor[str(record["unit"])]
        for name, record in kept.items()
        if "age p" in name
    }
    (RESULTS / "latency.svg").write_text(bars("Age of a row at its reader in milliseconds: shorter is better", ages))


if __name__ == "__main__":
    main()
