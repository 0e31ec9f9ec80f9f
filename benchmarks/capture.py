"""Change data capture against a bare consumer of confluent-kafka: records of Debezium into tables, on one local broker.

    python -m benchmarks.capture [--rows 300000] [--tables 50] [--rounds 3]

The peers consume the same records and store nothing: once as bytes, and once with each one decoded by ``json.loads``.
Ours writes them into a table with a key and commits every 100,000 rows. A fifth of the records are updates; of one
topic, a hundredth do not fit and are quarantined. Rounds alternate. ``processor`` are processor seconds of the process
per million records, with all of its threads and without the broker, which others on the machine hardly change.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from benchmarks.peers.bars import bars
from local_kafka import LocalKafka
from storage_lib import ingest, open_catalog, sync_database
from storage_lib.catalog.catalog import Catalog

RESULTS = Path(__file__).parent / "results"
COLUMNS = {
    "id": ("int64", "BIGINT NOT NULL"),
    "customer": ("int32", "INT"),
    "item": ("string", "VARCHAR(20)"),
    "note": ("string", "STRING"),
    "amount": ("double", "DOUBLE"),
    "is_paid": ("boolean", "BOOLEAN"),
}
UPDATED_SHARE = 5
REJECTED_SHARE = 100
"""One of so many records of the topic ``REJECTED`` has a text that does not fit."""
CONSUMED_AT_ONCE = 10_000
MILLION = 1_000_000
TIMEOUT_SECONDS = 60.0
FORMATS = ("debezium-json", "debezium-json-schema")
REJECTED = "debezium-json.rejected"


def main() -> None:
    """Run the benchmark, print the figures and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="capture-"))
    try:
        with LocalKafka(scratch) as broker:
            records = _measured(broker.bootstrap_servers, scratch, arguments)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for record in records:
        print(json.dumps(record))
    (RESULTS / "capture.json").write_text(json.dumps(records, indent=1) + "\n")
    rates = {str(record["name"]): float(str(record["value"])) for record in records}
    (RESULTS / "capture.svg").write_text(bars("Records of Debezium per second: longer is better", rates))


@dataclass(frozen=True)
class Work:
    """One measured work: ``run`` reads ``records``; ``peer`` names the work that it is compared with."""

    name: str
    records: int
    run: Callable[[], None]
    peer: str | None = None


def _measured(servers: str, scratch: Path, arguments: argparse.Namespace) -> list[dict[str, object]]:
    rows, tables = arguments.rows, arguments.tables
    for format_ in FORMATS:
        _fill(servers, format_, rows, has_schema=format_.endswith("-schema"))
    for number in range(tables):
        _fill(servers, f"shop.public.t{number}", rows // tables, has_schema=True)
    _fill(servers, REJECTED, rows, has_schema=False, rejected_share=REJECTED_SHARE)
    works: dict[str, Work] = {}
    seconds: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for number in range(arguments.rounds):
        catalog = open_catalog(str(scratch / f"warehouse-{number}"), {"log.kafka.bootstrap.servers": servers})
        for work in _works(servers, catalog, rows, tables):
            works[work.name] = work
            started, used = time.perf_counter(), time.process_time()
            work.run()
            seconds.setdefault(work.name, []).append(time.perf_counter() - started)
            processor.setdefault(work.name, []).append(time.process_time() - used)
            print(work.name, seconds[work.name][-1], processor[work.name][-1], file=sys.stderr, flush=True)
    best = {name: work.records / min(seconds[name]) for name, work in works.items()}
    used_least = {name: min(processor[name]) / work.records * MILLION for name, work in works.items()}
    return [
        {
            "name": name,
            "value": round(best[name]),
            "unit": "records/s",
            "ratio_to": work.peer,
            "ratio": None if work.peer is None else round(best[name] / best[work.peer], 3),
            "processor": round(used_least[name], 2),
            "processor_ratio": None if work.peer is None else round(used_least[name] / used_least[work.peer], 3),
        }
        for name, work in works.items()
    ]


def _works(servers: str, catalog: Catalog, rows: int, tables: int) -> Iterator[Work]:
    for format_ in FORMATS:
        peer = f"json.loads, {format_}"
        yield Work(f"bytes, {format_}", rows, partial(_consume, servers, format_, rows))
        yield Work(peer, rows, partial(_consume, servers, format_, rows, decode=json.loads))
        yield Work(f"ingest, {format_}", rows, _ingestion(catalog, format_, format_, "fail", rows), peer)
    taken = rows - rows // REJECTED_SHARE
    quarantined = _ingestion(catalog, REJECTED, FORMATS[0], "quarantine", taken)
    yield Work(f"ingest, {FORMATS[0]}, 1 % quarantined", rows, quarantined, f"ingest, {FORMATS[0]}")
    synced = rows // tables * tables
    yield Work(f"sync of {tables} tables, {FORMATS[1]}", synced, partial(_sync, catalog, synced), peer)


def _ingestion(catalog: Catalog, topic: str, format_: str, on_reject: str, rows: int) -> Callable[[], None]:
    name = f"shop.{topic}".replace("-", "_").replace("json.", "json_")
    columns = {column: type_ for column, (_, type_) in COLUMNS.items()}
    table = catalog.create_table(name, columns, primary_key=["id"], options={"log.system": "none", "bucket": "1"})

    def work() -> None:
        options = {**catalog.options, "source.on-reject": on_reject}
        result = ingest(table, topic, options=options, format=format_, rows_per_commit=100_000)
        _check(result.row_count, rows)

    return work


def _sync(catalog: Catalog, rows: int) -> None:
    made = {"log.system": "none", "bucket": "1"}
    result = sync_database(catalog, "shop.public.*", into="synced", options=catalog.options, table_options=made)
    if result.errors:
        raise result.errors[0]
    _check(sum(each.row_count for each in result.tables), rows)


def _fill(servers: str, topic: str, rows: int, *, has_schema: bool, rejected_share: int = 0) -> None:
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": servers}
    admin = AdminClient(client)  # it ends with its last reference, and its requests with it
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TIMEOUT_SECONDS)
    producer = Producer({**client, "linger.ms": 5, "batch.size": 1 << 20, "compression.type": "lz4"})
    for key, value in _records(rows, has_schema=has_schema, rejected_share=rejected_share):
        while True:
            try:
                producer.produce(topic, value, key, partition=0)
            except BufferError:
                producer.poll(1)
            else:
                break
    if producer.flush(TIMEOUT_SECONDS):
        message = f"records of {topic} were not written"
        raise RuntimeError(message)


def _records(rows: int, *, has_schema: bool, rejected_share: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values as Debezium writes them; every fifth record updates the row four before it."""
    fields = [{"field": name, "type": type_, "optional": name != "id"} for name, (type_, _) in COLUMNS.items()]
    sides = [{"field": side, "type": "struct", "fields": fields, "optional": True} for side in ("before", "after")]
    schema = _compact({"type": "struct", "fields": [*sides, {"field": "op", "type": "string", "optional": False}]})
    for number in range(rows):
        is_too_long = rejected_share and number % rejected_share == 0
        is_update = number % UPDATED_SHARE == UPDATED_SHARE - 1
        row = {
            "id": number - UPDATED_SHARE + 1 if is_update else number,
            "customer": number * 7 % 10_007,
            "item": f"item-{number % 997}" + " of the wrong length" * bool(is_too_long),
            "note": f"note of the order with number {number}, which nobody reads",
            "amount": number / 8,
            "is_paid": number % 3 == 0,
        }
        source = {"connector": "postgresql", "name": "shop", "ts_ms": 1_700_000_000_000 + number, "lsn": 1000 + number}
        change = _compact({"before": None, "after": row, "source": source, "op": "u" if is_update else "c"})
        value = f'{{"schema":{schema},"payload":{change}}}' if has_schema else change
        yield _compact({"id": row["id"]}).encode(), value.encode()


def _compact(value: object) -> str:
    """Write JSON as Kafka Connect's converter does."""
    return json.dumps(value, separators=(",", ":"))


def _consume(servers: str, topic: str, rows: int, *, decode: Callable[[bytes], Any] | None = None) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "enable.auto.commit": False,
            "fetch.min.bytes": 1 << 20,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while found < rows:
        messages = consumer.consume(min(CONSUMED_AT_ONCE, rows - found), TIMEOUT_SECONDS)
        if not messages:
            break
        values = [value for message in messages if (value := message.value()) is not None]
        found += len(values if decode is None else [decode(value) for value in values])
    consumer.close()
    _check(found, rows)


def _check(found: int, rows: int) -> None:
    if found != rows:
        message = f"{found} records were read of {rows}"
        raise RuntimeError(message)


if __name__ == "__main__":
    main()
