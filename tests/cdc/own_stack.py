"""Servers of one's own for games that kill them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_postgres import LocalPostgres
from local_registry import LocalRegistry
from tests.cdc.debezium_stack import LOGICAL, DebeziumStack, prepare

CLEANER = {"log.cleaner.backoff.ms": "100"}


@contextmanager
def own_stack(home: Path) -> Iterator[DebeziumStack]:
    """Run all servers during the block."""
    with ExitStack() as servers:
        postgres = servers.enter_context(LocalPostgres(home / "postgres", settings=LOGICAL))
        kafka = servers.enter_context(LocalKafka(home / "kafka", settings=CLEANER))
        registry = servers.enter_context(LocalRegistry(home / "registry"))
        connect = servers.enter_context(LocalConnect(home / "connect", kafka.bootstrap_servers))
        stack = DebeziumStack(postgres, kafka, connect, registry.url)
        prepare(stack)
        yield stack
