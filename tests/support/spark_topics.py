"""Topic access through an independent client (librdkafka), as a committed reader and as a CDC tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def committed_changes(table: DynamicTable, *, timeout_seconds: float = 120) -> list[tuple[str, int, str]]:
    """Return (op, id, v) of every change, in order within each bucket. An open transaction hides later changes."""
    changes = committed_values(table, timeout_seconds=timeout_seconds)
    rows = [(change["op"], change["after"] or change["before"]) for change in changes]
    return [(op, row["id"], row["v"]) for op, row in rows]


def committed_values(table: DynamicTable, *, timeout_seconds: float = 120) -> list[dict[str, Any]]:
    """Return every change as decoded JSON, in order within each bucket."""
    consumer = Consumer(
        {
            "bootstrap.servers": table.address.options["log.kafka.bootstrap.servers"],
            "group.id": "test",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    topic = table.schema.options["log.kafka.topic"]
    buckets = range(table.schema.bucket_count)
    consumer.assign([TopicPartition(topic, bucket, 0) for bucket in buckets])
    seen: list[dict[str, Any]] = []
    ended: set[int] = set()
    try:
        while len(ended) < len(buckets):
            message = consumer.poll(timeout_seconds)
            if message is None:
                raise TimeoutError(f"the end of {topic} never came")
            partition, value = message.partition(), message.value()
            if message.error():
                assert partition is not None
                ended.add(partition)
            elif value is not None:
                seen.append(json.loads(value))
    finally:
        consumer.close()
    return seen


def delete(bootstrap_servers: str, topic: str) -> None:
    """Delete the topic, and return once the broker no longer lists it."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.delete_topics([topic])[topic].result(120)
    wait_until(lambda: topic not in admin.list_topics(timeout=120).topics)


def produce(bootstrap_servers: str, topic: str, *changes: dict[str, object] | None) -> None:
    """Write debezium-json as a CDC tool would, one message per change; None is a tombstone. Creates a missing topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    if topic not in admin.list_topics(timeout=120).topics:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(120)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for change in changes:
        producer.produce(topic, None if change is None else json.dumps(change), partition=0)
    assert producer.flush(120) == 0


def topics_of_broker(bootstrap_servers: str) -> dict[str, int]:
    """Return every topic and its number of partitions."""
    metadata = AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(timeout=120)
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}
