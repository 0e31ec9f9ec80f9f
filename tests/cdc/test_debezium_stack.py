"""What the database has committed is in Kafka once the wait for it returns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg import sql

from tests.cdc.debezium_stack import FollowedSchema

if TYPE_CHECKING:
    from tests.cdc.debezium_stack import DebeziumStack

LONG = "x" * 10_000
"""More than half a batch of the producer: each row is sent by itself, while short ones overtake them."""


@pytest.fixture
def followed(debezium: DebeziumStack, tmp_path: Path) -> Iterator[tuple[FollowedSchema, psycopg.Connection[Any]]]:
    schema = FollowedSchema(debezium, f"sent_{tmp_path.name.replace('-', '_').lower()}", "json")
    with debezium.database() as database:
        schema.create(database)
        database.execute(sql.SQL("create table {} (id int primary key, line text)").format(table_of(schema)))
        schema.follow()
        yield schema, database
        schema.end(database)


def test_what_is_committed_has_arrived_after_the_wait(
    followed: tuple[FollowedSchema, psycopg.Connection[Any]],
) -> None:
    schema, database = followed
    insert = sql.SQL("insert into {} select n, %s from generate_series(%s::int, %s::int) n").format(table_of(schema))

    counts = []
    for start in range(0, 200, 50):
        database.execute(insert, [LONG, start, start + 49])
        schema.wait_until_sent(database)
        counts.append(count_of(schema))

    assert counts == [50, 100, 150, 200]


def table_of(schema: FollowedSchema) -> sql.Identifier:
    return sql.Identifier(schema.name, "lines")


def count_of(schema: FollowedSchema) -> int:
    consumer = Consumer({"bootstrap.servers": schema.stack.kafka.bootstrap_servers, "group.id": "counts"})
    try:
        return consumer.get_watermark_offsets(TopicPartition(schema.topic("lines"), 0), timeout=60)[1]
    finally:
        consumer.close()
