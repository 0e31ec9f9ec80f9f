"""Logs under test: ``open_log`` opens stores in memory and on a real broker, with the same arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from storage_lib.io.environment import SystemClock
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import LogStore
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.options.table_options import ChangelogMode
from storage_lib.schema.table_schema import TableSchema

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings

TRANSACTION_TIMEOUT_MS = 60_000


@pytest.fixture(scope="session")
def kafka_servers(request: pytest.FixtureRequest) -> str:
    """Return the bootstrap servers of the local broker, or of the one named in KAFKA_BOOTSTRAP_SERVERS."""
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    return named or str(request.getfixturevalue("kafka").bootstrap_servers)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """Return a topic name that is unique across tests and runs."""
    unique = os.urandom(6).hex()
    return "".join(each if each.isalnum() else "-" for each in request.node.name)[:100] + "-" + unique


@pytest.fixture(params=["memory", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.integration])])
def open_log(request: pytest.FixtureRequest, topic: str) -> Iterator[Callable[..., LogStore]]:
    """Return a function that opens stores of one log; the log is dropped afterwards."""
    opened: list[LogStore] = []

    def open_store(
        schema: TableSchema,
        *,
        table_uuid: str | None = None,
        changelog_mode: ChangelogMode = ChangelogMode.AUTO,
        retention_ms: int | None = None,
    ) -> LogStore:
        uuid = table_uuid or f"table-of-{topic}"
        store: LogStore
        if request.param == "memory":
            store = MemoryLogStore(
                schema,
                topic,
                uuid,
                SystemClock(),
                changelog_mode=changelog_mode,
                retention_ms=retention_ms,
                transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            )
        else:
            from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore

            servers = request.getfixturevalue("kafka_servers")
            settings = kafka_settings(servers, topic, uuid, changelog_mode=changelog_mode, retention_ms=retention_ms)
            store = KafkaLogStore(schema, settings, SystemClock())
        opened.append(store)
        return store

    yield open_store
    if opened:
        opened[0].drop()


@pytest.fixture
def expire(request: pytest.FixtureRequest) -> Callable[[LogStore, LogOffsets], None]:
    """Return a function that deletes a log's records below some offsets, as its retention would in time."""

    def forget(log: LogStore, before: LogOffsets) -> None:
        if isinstance(log, MemoryLogStore):
            log.expire(before)
            return
        from kafka.admin import KafkaAdminClient

        from storage_lib.log_store.kafka.kafka_log_store import KafkaLogStore

        assert isinstance(log, KafkaLogStore)
        admin = KafkaAdminClient(bootstrap_servers=log.settings.servers)
        try:
            delete_records(admin, log.settings.topic, before)
        finally:
            admin.close()

    return forget


def delete_records(admin: KafkaAdminClient, topic: str, before: LogOffsets) -> None:
    """Move the start offsets of Kafka partitions."""
    from kafka import TopicPartition

    admin.delete_records({TopicPartition(topic, bucket): offset for bucket, offset in before.next_offsets.items()})


def kafka_settings(
    servers: str,
    topic: str,
    table_uuid: str,
    *,
    changelog_mode: ChangelogMode = ChangelogMode.AUTO,
    retention_ms: int | None = None,
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
    limit_ms: int = 30_000,
) -> KafkaLogSettings:
    """Return settings for the local broker."""
    from storage_lib.log_store.kafka.kafka_log_settings import KafkaLogSettings

    return KafkaLogSettings(
        topic=topic,
        table_uuid=table_uuid,
        client_options={"bootstrap.servers": servers},
        changelog_mode=changelog_mode,
        retention_ms=retention_ms,
        transaction_timeout_ms=transaction_timeout_ms,
        limit_ms=limit_ms,
    )
