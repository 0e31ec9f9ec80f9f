"""The log against librdkafka (confluent-kafka): writing and reading changes of one bucket, on one local broker.

    python -m benchmarks.log [--rows 1000000] [--rounds 3] [--transactions 200]

Our times include encoding Arrow to debezium-json and decoding it. The peer's producer is timed twice: with rows encoded
by json.dumps, as a caller with rows has to do, and with keys and values that are already encoded. Its consumer returns
bytes without decoding them. Both write in transactions of the same size and wait for every acknowledgement; rounds
alternate.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docker" / "local"))

from benchmarks.peers.bars import bars
from local_kafka import LocalKafka
from storage_lib.io.environment import SystemClock
from storage_lib.log_store.codec.debezium_json import DebeziumJson
from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings
from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.schema.types.type_spelling import parse_columns

RESULTS = Path(__file__).parent / "results"
COLUMNS = "id BIGINT, dt STRING, name STRING, amount DECIMAL(12, 2), score DOUBLE, ts TIMESTAMP(6)"
TRANSACTION_ROWS = 50_000
SMALL_TRANSACTION_ROWS = 1_000
CONSUMED_AT_ONCE = 10_000
TIMEOUT_SECONDS = 60.0


def main() -> None:
    """Run the benchmark, print the figures and store them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--transactions", type=int, default=200)
    arguments = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="log-"))
    try:
        with LocalKafka(scratch) as broker:
            records = _measured(broker.bootstrap_servers, arguments)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for record in records:
        print(json.dumps(record))
    (RESULTS / "log.json").write_text(json.dumps(records, indent=1) + "\n")
    rates = {str(record["name"]): float(str(record["value"])) for record in records if record["unit"] == "rows/s"}
    (RESULTS / "log.svg").write_text(bars("Rows per second through one bucket of the log: longer is better", rates))


def _measured(servers: str, arguments: argparse.Namespace) -> list[dict[str, object]]:
    schema = new_table_schema(parse_columns(COLUMNS), primary_keys=["id"], options={"bucket": "1"}, time_millis=0)
    rows = _rows(arguments.rows, schema)
    kinds = pa.array(np.full(arguments.rows, RowKind.INSERT, np.int8))
    spelled = list(DebeziumJson.for_table(schema, ChangelogMode.UPSERT).encode(rows, kinds))
    keys = [key for part in spelled for key in part.keys.to_pylist()]
    values = [value for part in spelled for value in part.values.to_pylist()]
    works = ("our write", "their write", "their write of rows", "our read", "their read")
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(arguments.rounds):
        log = _new_log(servers, schema)
        seconds["our write"].append(_timed(lambda log=log: _write(log, rows, kinds, TRANSACTION_ROWS)))
        topic = _new_log(servers, schema).settings.topic
        ready = zip(keys, values, strict=True)
        seconds["their write"].append(_timed(lambda topic=topic, ready=ready: _produce(servers, topic, ready)))
        other = _new_log(servers, schema).settings.topic
        seconds["their write of rows"].append(_timed(lambda other=other: _produce(servers, other, _spelled(rows))))
        seconds["our read"].append(_timed(lambda log=log: _read(log, arguments.rows)))
        seconds["their read"].append(_timed(lambda topic=topic: _consume(servers, topic, arguments.rows)))
    log = _new_log(servers, schema)
    some, some_kinds = rows.slice(0, SMALL_TRANSACTION_ROWS), kinds.slice(0, SMALL_TRANSACTION_ROWS)
    small = [
        _timed(lambda: _write(log, some, some_kinds, SMALL_TRANSACTION_ROWS)) for _ in range(arguments.transactions)
    ]
    best = {name: arguments.rows / min(each) for name, each in seconds.items()}
    return [
        _record(
            "write, Arrow to committed",
            best["our write"],
            "rows/s",
            "confluent-kafka write of rows",
            best["their write of rows"],
        ),
        _record("confluent-kafka write of rows", best["their write of rows"], "rows/s"),
        _record(
            "write, Arrow to committed, against preencoded records",
            best["our write"],
            "rows/s",
            "confluent-kafka write of preencoded records",
            best["their write"],
        ),
        _record("confluent-kafka write of preencoded records", best["their write"], "rows/s"),
        _record("read, committed to Arrow", best["our read"], "rows/s", "confluent-kafka read", best["their read"]),
        _record("confluent-kafka read", best["their read"], "rows/s"),
        _record(f"transaction of {SMALL_TRANSACTION_ROWS} rows, p50", 1000 * statistics.median(small), "ms"),
        _record(f"transaction of {SMALL_TRANSACTION_ROWS} rows, p99", 1000 * float(np.percentile(small, 99)), "ms"),
    ]


def _record(name: str, value: float, unit: str, ratio_to: str | None = None, other: float = 1.0) -> dict[str, object]:
    ratio = None if ratio_to is None else round(value / other, 3)
    return {"name": name, "value": round(value, 2), "unit": unit, "ratio_to": ratio_to, "ratio": ratio}


def _rows(count: int, schema: TableSchema) -> pa.RecordBatch:
    random = np.random.default_rng(7)
    ids = np.arange(count)
    cents = pa.array(random.integers(0, 10_000_000, count)).cast(pa.decimal128(19, 0))
    amount = pa.Array.from_buffers(pa.decimal128(12, 2), count, [None, cents.buffers()[1]])
    return pa.RecordBatch.from_arrays(
        [
            pa.array(ids),
            pa.array(np.char.add("2026-01-", (ids % 28 + 1).astype(str))),
            pa.array(np.char.add("name-", random.integers(10**7, 10**8, count).astype(str))),
            amount,
            pa.array(random.random(count)),
            pa.array(1_700_000_000_000_000 + ids, pa.timestamp("us")),
        ],
        schema=schema.arrow_schema,
    )


def _new_log(servers: str, schema: TableSchema) -> KafkaLogStore:
    name = f"bench-{uuid.uuid4().hex}"
    settings = KafkaLogSettings(topic=name, table_uuid=name, client_options={"bootstrap.servers": servers})
    log = KafkaLogStore(schema, settings, SystemClock())
    log.create()
    return log


def _write(log: KafkaLogStore, rows: pa.RecordBatch, kinds: pa.Array, transaction_rows: int) -> None:
    for start in range(0, rows.num_rows, transaction_rows):
        transaction = log.begin(0)
        transaction.write(0, rows.slice(start, transaction_rows), kinds.slice(start, transaction_rows))
        transaction.flush()
        log.end(transaction.handle, commit=True)


def _read(log: KafkaLogStore, row_count: int) -> None:
    found = sum(batch.rows.num_rows for batch in log.read(LogOffsets({0: 0})))
    _check(found, row_count)


def _spelled(rows: pa.RecordBatch) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values as a program encodes rows with the standard library."""
    for start in range(0, rows.num_rows, TRANSACTION_ROWS):
        for row in rows.slice(start, TRANSACTION_ROWS).to_pylist():
            row["amount"], row["ts"] = str(row["amount"]), int(row["ts"].timestamp() * 1_000_000)
            change = {"before": None, "after": row, "op": "c"}
            yield json.dumps({"id": row["id"]}).encode(), json.dumps(change).encode()


def _produce(servers: str, topic: str, records: Iterator[tuple[bytes, bytes]]) -> None:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": topic,
            "compression.type": "lz4",
            "linger.ms": 5,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 2 * TRANSACTION_ROWS,
        }
    )
    producer.init_transactions(TIMEOUT_SECONDS)
    while some := list(islice(records, TRANSACTION_ROWS)):
        producer.begin_transaction()
        for key, value in some:
            producer.produce(topic, value, key, partition=0)
        producer.commit_transaction(TIMEOUT_SECONDS)


def _consume(servers: str, topic: str, row_count: int) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1 << 20,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while found < row_count:
        messages = consumer.consume(CONSUMED_AT_ONCE, TIMEOUT_SECONDS)
        if not messages:
            break
        found += sum(message.value() is not None for message in messages)
    consumer.close()
    _check(found, row_count)


def _check(found: int, row_count: int) -> None:
    if found != row_count:
        message = f"{found} rows came back of {row_count}"
        raise RuntimeError(message)


def _timed(work: Callable[..., Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
