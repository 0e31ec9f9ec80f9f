"""Three brokers with all records replicated: when the leader crashes, nothing is lost, repeated or reordered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from local_kafka import JARS, LocalKafka
from storage_lib import DynamicTable, HybridSource, open_catalog
from storage_lib.log_store.kafka.kafka_cluster import close_connections
from tests.support.spark_topics import committed_changes
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.integration]

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string())])
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.replication.factor": "3",
    # Time in which the controller detects a crashed broker.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "500",
}
ROWS = 20


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[int, LocalKafka]]:
    """Start three brokers; the first is also the controller, and is never killed."""
    if not JARS.exists():
        pytest.skip("Kafka is not set up: run `make setup`")
    with ExitStack() as running:
        first = running.enter_context(LocalKafka(tmp_path / "broker-1", settings=SETTINGS))
        started = {1: first}
        for node in (2, 3):
            broker = LocalKafka(tmp_path / f"broker-{node}", settings=SETTINGS, node_id=node, joins=first)
            started[node] = running.enter_context(broker)
        yield started
        close_connections()


def test_a_leader_dies_between_and_within_transactions(brokers: dict[int, LocalKafka], tmp_path: Path) -> None:
    servers = ",".join(broker.bootstrap_servers for broker in brokers.values())
    wait_until(lambda: len(AdminClient({"bootstrap.servers": servers}).list_topics(timeout=120).brokers) == 3)
    catalog = open_catalog(str(tmp_path / "warehouse"), {"log.kafka.bootstrap.servers": servers})
    options = {"bucket": "3", "log.kafka.topic": "replicated"}
    table = catalog.create_table("db.replicated", COLUMNS, primary_key=["id"], options=options)
    stream = table.stream(startup="full")
    append(table, 0)
    mortal = next(node for node in leaders(servers, "replicated") if node != 1)

    order = table.new_write().begin(commit_user="writer")
    with table.new_write().open_task(order) as write:
        write.write(rows(1))
        brokers[mortal].kill()
        write.write(rows(2))
        table.new_write().commit(order, [write.prepare_commit()], commit_identifier=1)
    append(table, 3)
    brokers[mortal].start()
    append(table, 4)

    expected = [(number * ROWS + key, f"round {number}") for number in range(5) for key in range(ROWS)]
    assert sorted((id_, value) for _, id_, value in committed_changes(table)) == expected
    assert sorted(zip(*table.to_arrow().to_pydict().values(), strict=True)) == expected
    streamed: list[int] = []

    def has_all() -> bool:
        streamed.extend(polled(stream))
        return len(streamed) >= len(expected)

    wait_until(has_all)
    assert sorted(streamed) == [id_ for id_, _ in expected]


def rows(number: int) -> pa.Table:
    return pa.table({"id": range(number * ROWS, (number + 1) * ROWS), "v": [f"round {number}"] * ROWS})


def append(table: DynamicTable, number: int) -> None:
    table.append(rows(number))


def polled(stream: HybridSource) -> list[int]:
    changes = stream.poll()
    return [] if changes is None else [int(each) for each in changes["id"].to_pylist()]


def leaders(servers: str, topic: str) -> list[int]:
    described = AdminClient({"bootstrap.servers": servers}).list_topics(topic, timeout=120).topics[topic]
    return [partition.leader for partition in described.partitions.values()]
