"""The session's Kafka broker: one for all of pytest's processes."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from local_kafka import JARS, LocalKafka
from tests.support.extras import needed
from tests.support.shared_server import common_folder, shared_server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """One real broker for all of pytest's processes, started by the first test that uses it; it ends with the last.

    Tests that run at the same time share it: name your topics after your test, and expect those of others. A test that
    kills a broker, halts it or counts what it holds must start its own.
    """
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    needed("kafka")
    with shared_server(LocalKafka(common_folder(tmp_path_factory) / "kafka", outlives_us=True)) as broker:
        yield broker


def pytest_sessionfinish() -> None:
    """Close connections to the stopped brokers: the client would otherwise reconnect, and log, until the exit."""
    connections = sys.modules.get("storage_lib.log_store.kafka.kafka_cluster")
    if connections is not None:
        connections.close_connections()
