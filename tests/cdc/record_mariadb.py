# ruff: noqa: S608 - the names in these statements are our own
"""Records what a real Debezium writes about ``mariadb_tables.py``, for tests that replay it.

PYTHONPATH=docker/local python -m tests.cdc.record_mariadb  # a minute; writes tests/cdc/recorded_mariadb
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_mariadb import LocalMariadb
from tests.cdc.debezium_modes import MODES, mariadb_connector
from tests.cdc.mariadb_rows import kinds_of, position_of, rows_of
from tests.cdc.mariadb_tables import BEFORE, STEPS, TABLES
from tests.cdc.record_debezium import DEADLINE_SECONDS, read, write

HOME = Path(__file__).parent / "recorded_mariadb"
MARIADB_MODES = ("json", "json-schema", "json-schema-as-text", "flattened-json-schema")
DATABASE = "shop"
END = "the_end"
"""A table whose last row arrives once a connector has sent all that came before."""


def main(home: Path) -> None:
    """Start the servers, live the tables' lives, and write what arrived."""
    with tempfile.TemporaryDirectory(prefix="record-mariadb-") as scratch, ExitStack() as servers:
        folder = Path(scratch)
        mariadb = servers.enter_context(LocalMariadb(folder / "mariadb"))
        kafka = servers.enter_context(LocalKafka(folder / "kafka"))
        connect = servers.enter_context(LocalConnect(folder / "connect", kafka.bootstrap_servers))
        mariadb.query(f"create database {DATABASE}")
        states = live(mariadb, connect, kafka.bootstrap_servers, folder)
        records = {
            (mode, table): read(kafka.bootstrap_servers, f"{mode}.{DATABASE}.{table}")
            for mode in MARIADB_MODES
            for table in TABLES
        }
    write(home, records, states, {})


def live(mariadb: LocalMariadb, connect: LocalConnect, servers: str, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Run all steps while all connectors are at work; return each table's states."""
    mariadb.query(";\n".join([*BEFORE, f"create table {END}(id int primary key)"]), database=DATABASE)
    mariadb.query(f"insert into {END} values (1)", database=DATABASE)
    states = {table: [state(mariadb, table, ())] for table in TABLES}
    for number, name in enumerate(MARIADB_MODES):
        config = mariadb_connector(
            MODES[name],
            name=name,
            number=100 + number,
            port=mariadb.port,
            database=DATABASE,
            registry_url="",
            history=folder / f"{name}.history",
        )
        connect.put(name, config)
    wait_for(connect, servers, 1)
    for step in STEPS:
        mariadb.query("set sql_mode = ''; begin;\n" + ";\n".join(step) + ";\ncommit", database=DATABASE)
        for table, seen in states.items():
            if any(f" {table}" in statement for statement in step):
                seen.append(state(mariadb, table, step))
    mariadb.query(f"insert into {END} values (2)", database=DATABASE)
    wait_for(connect, servers, 2)
    return states


def state(mariadb: LocalMariadb, table: str, step: tuple[str, ...]) -> dict[str, Any]:
    """Return the rows of a table as text, and the number of the next transaction, as ``source.gtid`` ends with it."""
    kinds = kinds_of(mariadb, DATABASE, table)
    rows = rows_of(mariadb, DATABASE, table, kinds)
    return {"step": step, "lsn": position_of(mariadb) + 1, "types": kinds, "rows": rows}


def wait_for(connect: LocalConnect, servers: str, rows: int) -> None:
    """Wait until every connector has sent so many rows of the last table."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not all(len(read(servers, f"{name}.{DATABASE}.{END}")) >= rows for name in MARIADB_MODES):
        failures = {name: failure for name in MARIADB_MODES if (failure := connect.failure(name))}
        if failures or time.monotonic() > deadline:
            sys.exit("\n".join(f"{name}: {failure}" for name, failure in failures.items()) or "it takes too long")
        time.sleep(0.5)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else HOME)
