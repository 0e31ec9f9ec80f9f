"""A database, a broker, a registry and Debezium between them, for tests of what arrives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from confluent_kafka import Consumer
from psycopg import sql

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_postgres import LocalPostgres
from tests.cdc.debezium_modes import MODES, Mode, postgres_connector

__all__ = ["DEADLINE_SECONDS", "LOGICAL", "DebeziumStack", "FollowedSchema", "prepare"]

LOGICAL = {"wal_level": "logical", "max_wal_senders": "40", "max_replication_slots": "40"}
"""Settings of a PostgreSQL that Debezium can follow."""

DEADLINE_SECONDS = 180
MARKS = "marks"


class ConnectorFailedError(AssertionError):
    """A connector has ended with an error; its trace follows."""


@dataclass(frozen=True, slots=True)
class DebeziumStack:
    """Running servers; ``registry_url`` is empty if there is none."""

    postgres: LocalPostgres
    kafka: LocalKafka
    connect: LocalConnect
    registry_url: str = ""

    def database(self) -> psycopg.Connection[Any]:
        """Open a connection in which each statement is a transaction; times are in UTC."""
        return psycopg.connect(self.postgres.uri, autocommit=True, options="-c timezone=UTC")


def prepare(stack: DebeziumStack) -> None:
    """Make what the tables of all games share."""
    with stack.database() as database:
        database.execute("create type mood as enum ('sad', 'ok', 'happy')")


class FollowedSchema:
    """A schema of the database and the connector that follows it; ``name`` names both and begins the topics' names."""

    def __init__(self, stack: DebeziumStack, name: str, mode: str, options: Mapping[str, str] | None = None) -> None:
        self.stack = stack
        self.name = name
        self.mode: Mode = MODES[mode]
        self._options = dict(options or {})
        self._marks = 0
        self._consumer = Consumer({"bootstrap.servers": stack.kafka.bootstrap_servers, "group.id": name})

    def topic(self, table: str) -> str:
        return f"{self.name}.{self.name}.{table}"

    def topics(self) -> set[str]:
        """Return the topics that the connector has created so far."""
        return {name for name in self._consumer.list_topics(timeout=60).topics if name.startswith(f"{self.name}.")}

    def create(self, database: psycopg.Connection[Any]) -> None:
        """Create the schema, without tables but one that holds marks."""
        database.execute(sql.SQL("create schema {}").format(sql.Identifier(self.name)))
        database.execute(sql.SQL("create table {} (n int primary key)").format(self._marked))

    def follow(self) -> None:
        """Start the connector, which first reads what is there."""
        plain = postgres_connector(
            self.mode, name=self.name, port=self.stack.postgres.port, registry_url=self.stack.registry_url
        )
        own = {"schema.include.list": self.name, "poll.interval.ms": "20", **self._options}
        self.stack.connect.put(self.name, {**plain, **own})

    def wait_until_sent(self, database: psycopg.Connection[Any]) -> None:
        """Return once Kafka has acknowledged all that is committed in the database.

        A mark is not enough: records of other topics, sent before it, may arrive after it. All records of the first
        snapshot have one position, that of its end, so that all have arrived only when the last one has.
        """
        ((reached,),) = database.execute("select (pg_current_wal_lsn() - '0/0')::bigint").fetchall()
        self._marks += 1
        database.execute(sql.SQL("insert into {} values (%s)").format(self._marked), [self._marks])
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not any(_is_past(each, reached) for each in self.stack.connect.positions(self.name)):
            failure = self.stack.connect.failure(self.name)
            if failure is not None or time.monotonic() > deadline:
                raise ConnectorFailedError(failure or "what is committed is not sent in time")
            time.sleep(0.02)

    def end(self, database: psycopg.Connection[Any]) -> None:
        """Stop the connector, and delete its slot and the tables."""
        self._consumer.close()
        self.stack.connect.remove(self.name)
        deadline = time.monotonic() + DEADLINE_SECONDS
        active = "select active from pg_replication_slots where slot_name = %s"
        while database.execute(active, [self.name]).fetchall() == [(True,)]:
            assert time.monotonic() < deadline, "the connector does not leave its slot"
            time.sleep(0.05)
        database.execute(
            "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s", [self.name]
        )
        database.execute(sql.SQL("drop publication if exists {}").format(sql.Identifier(self.name)))
        database.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(self.name)))

    @property
    def _marked(self) -> sql.Identifier:
        return sql.Identifier(self.name, MARKS)


def _is_past(position: Mapping[str, object], reached: int) -> bool:
    is_in_snapshot = "snapshot" in position and not position.get("last_snapshot_record")
    return int(str(position.get("lsn", 0))) >= reached and not is_in_snapshot
