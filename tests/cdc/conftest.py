"""The session's Debezium: a PostgreSQL that it can follow, and Kafka Connect, with the broker that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from local_connect import JARS, LocalConnect
from local_postgres import LocalPostgres, find_programs

if TYPE_CHECKING:
    from local_kafka import LocalKafka
    from tests.cdc.debezium_stack import DebeziumStack


@pytest.fixture(scope="session")
def debezium(kafka: LocalKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebeziumStack]:
    """One database and one Kafka Connect for the session; use a schema of your own, and leave the broker running."""
    if not JARS.exists():
        pytest.skip("there is no Kafka Connect with Debezium here: run `make servers`")
    if find_programs() is None:
        pytest.skip("there is no PostgreSQL here: run `make servers`, which says how to get it")
    from tests.cdc.debezium_stack import LOGICAL, DebeziumStack, prepare

    home = tmp_path_factory.mktemp("debezium")
    with (
        LocalPostgres(home / "postgres", settings=LOGICAL) as postgres,
        LocalConnect(home / "connect", kafka.bootstrap_servers) as connect,
    ):
        stack = DebeziumStack(postgres, kafka, connect)
        prepare(stack)
        yield stack


@pytest.fixture(scope="session")
def own_servers(debezium: DebeziumStack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebeziumStack]:
    """Servers that a game may kill; skipped where those of ``debezium`` are missing."""
    from tests.cdc.own_stack import own_stack

    assert debezium.postgres.pid is not None
    with own_stack(tmp_path_factory.mktemp("own")) as stack:
        yield stack
