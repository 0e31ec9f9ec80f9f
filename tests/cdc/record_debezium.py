"""Records what a real Debezium writes about ``recorded_tables.py``, for tests that replay it.

PYTHONPATH=docker/local python -m tests.cdc.record_debezium  # two minutes; writes tests/cdc/recorded
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psycopg
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from psycopg.rows import tuple_row

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_postgres import LocalPostgres
from local_registry import LocalRegistry
from tests.cdc.debezium_modes import MODES, postgres_connector
from tests.cdc.debezium_stack import LOGICAL
from tests.cdc.recorded_tables import BEFORE, STEPS, TABLES
from tests.support.recorded_changes import RECORDED, RecordedRecord, lines_of

END = "the_end"
"""A table whose last row arrives once a connector has sent all that came before."""
# What values a mode changes is seen in the tables of types; the kinds of records are those of the defaults.
TABLES_OF_VALUES = ("every_type", "special_values", "toasted")
OF_MOVED_KEYS = ("__debezium.oldkey", "__debezium.newkey")
DEADLINE_SECONDS = 300


def main(home: Path) -> None:
    """Start the servers, live the tables' lives, and write what arrived."""
    with tempfile.TemporaryDirectory(prefix="record-debezium-") as scratch, ExitStack() as servers:
        folder = Path(scratch)
        postgres = servers.enter_context(LocalPostgres(folder / "postgres", settings=LOGICAL))
        kafka = servers.enter_context(LocalKafka(folder / "kafka"))
        registry = servers.enter_context(LocalRegistry(folder / "registry"))
        connect = servers.enter_context(LocalConnect(folder / "connect", kafka.bootstrap_servers))
        states = live(postgres, connect, registry.url)
        wait(connect, lambda: all(read(kafka.bootstrap_servers, f"{mode}.public.{END}") for mode in MODES))
        records = {
            (mode, table): read(kafka.bootstrap_servers, f"{mode}.public.{table}")
            for mode in MODES
            for table in tables_of(mode)
        }
        records["json", "messages"] = read(kafka.bootstrap_servers, "json.message")
        records["json-microseconds", "transactions"] = read(kafka.bootstrap_servers, "json-microseconds.transaction")
        schemas = dict(schemas_of(registry.url))
    write(home, records, states, schemas)


def tables_of(mode: str) -> tuple[str, ...]:
    """Return the tables of which a mode's records are kept."""
    return TABLES_OF_VALUES if mode.partition("-as-")[1] or mode.endswith("-microseconds") else TABLES


def live(postgres: LocalPostgres, connect: LocalConnect, registry_url: str) -> dict[str, list[dict[str, Any]]]:
    """Run all steps while all connectors are at work; return each table's states."""
    with psycopg.connect(postgres.uri, autocommit=True) as database:
        for statement in (*BEFORE, f"create table {END}(id int primary key)"):
            database.execute(statement)
        states = {table: [state(database, table, ())] for table in TABLES}
        for name, mode in MODES.items():
            connect.put(name, postgres_connector(mode, name=name, port=postgres.port, registry_url=registry_url))
        wait_until_all_follow(database, connect)
        for step in STEPS:
            with database.transaction():
                for statement in step:
                    database.execute(statement)
            for table, seen in states.items():
                if any(f" {table}" in statement for statement in step):
                    seen.append(state(database, table, step))
        database.execute(f"insert into {END} values (1)")  # noqa: S608 - our name
    return states


def state(database: psycopg.Connection[Any], table: str, step: tuple[str, ...]) -> dict[str, Any]:
    """Return the rows of a table as text, and up to where the log has led to them."""
    with database.cursor(row_factory=tuple_row) as cursor:
        columns = cursor.execute(
            "select attname, format_type(atttypid, atttypmod) from pg_attribute"
            " where attrelid = %s::regclass and attnum > 0 and not attisdropped order by attnum",
            [table],
        ).fetchall()
        listed = ", ".join(f"{name}::text" for name, _ in columns)
        rows = cursor.execute(f"select {listed} from {table} order by 1, 2").fetchall()  # noqa: S608 - our names
        ((lsn,),) = cursor.execute("select (pg_current_wal_lsn() - '0/0')::bigint").fetchall()
    names = [name for name, _ in columns]
    return {
        "step": step,
        "lsn": lsn,
        "types": dict(columns),
        "rows": [dict(zip(names, row, strict=True)) for row in rows],
    }


def wait_until_all_follow(database: psycopg.Connection[Any], connect: LocalConnect) -> None:
    """Wait until every connector has read its snapshot and follows the log."""
    active = "select count(*) from pg_replication_slots where active"
    wait(connect, lambda: database.execute(active).fetchall() == [(len(MODES),)])


def wait(connect: LocalConnect, happened: Callable[[], bool]) -> None:
    """Wait, and raise an error if a connector fails meanwhile."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not happened():
        failures = {name: failure for name in MODES if (failure := connect.failure(name))}
        if failures or time.monotonic() > deadline:
            sys.exit("\n".join(f"{name}: {failure}" for name, failure in failures.items()) or "it takes too long")
        time.sleep(0.5)


def read(bootstrap_servers: str, topic: str) -> list[RecordedRecord]:
    """Return all records of a topic's only partition; none if it does not exist."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "recorder", "enable.auto.commit": False})
    place = TopicPartition(topic, 0, 0)
    try:
        try:
            _, end = consumer.get_watermark_offsets(place, timeout=20)
        except KafkaException:
            return []
        consumer.assign([place])
        records: list[RecordedRecord] = []
        while len(records) < end:
            message = consumer.poll(20)
            if message is None or message.error() is not None:
                sys.exit(f"{topic}: only {len(records)} of {end} records can be read")
            records.append(to_record(message))
    finally:
        consumer.close()
    return records


def to_record(message: Message) -> RecordedRecord:
    headers = dict(message.headers() or ())
    moved = {name: value.decode() for name in OF_MOVED_KEYS if isinstance(value := headers.get(name), bytes)}
    return RecordedRecord(message.offset() or 0, message.timestamp()[1], message.key(), message.value(), moved)


def schemas_of(registry_url: str) -> Iterator[tuple[int, object]]:
    """Yield all schemas of the registry by their ids."""
    for subject in answer(f"{registry_url}/subjects"):
        for version in answer(f"{registry_url}/subjects/{subject}/versions"):
            found = answer(f"{registry_url}/subjects/{subject}/versions/{version}")
            yield found["id"], json.loads(found["schema"])


def answer(url: str) -> Any:
    with urlopen(url, timeout=20) as response:  # noqa: S310 - our own address
        return json.load(response)


def write(
    home: Path,
    records: Mapping[tuple[str, str], list[RecordedRecord]],
    states: Mapping[str, list[dict[str, Any]]],
    schemas: Mapping[int, object],
) -> None:
    """Replace the files of an earlier recording."""
    shutil.rmtree(home, ignore_errors=True)
    for (mode, table), found in records.items():
        is_text = mode not in MODES or MODES[mode].form != "avro"
        store(home / mode / f"{table}.jsonl", lines_of(found, is_text=is_text))
    for table, seen in states.items():
        store(home / "rows" / f"{table}.jsonl", "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in seen))
    store(home / "registry.json", json.dumps(dict(sorted(schemas.items())), ensure_ascii=False) + "\n")


def store(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else RECORDED)
