"""Compares the files and the topic of an ``orders`` table; confluent-kafka reads the topic (read_committed)."""

from __future__ import annotations

import json

from confluent_kafka import Consumer, TopicPartition

from storage_lib import DynamicTable, StreamPosition
from tests.support.orders_table import applied, content, streamed

OP_KINDS = {"c": "+I", "u": "+U", "d": "-D"}


def committed_log(table: DynamicTable, servers: str) -> list[str]:
    """Return every committed record of every Kafka partition, as ``"+I a 1 10"``."""
    assert table.log is not None
    topic = table.log.description()["log.kafka.topic"]
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "checker", "isolation.level": "read_committed"}
        | {"enable.auto.commit": False, "enable.partition.eof": True}
    )
    found: list[str] = []
    try:
        for bucket in range(table.schema.bucket_count):
            consumer.assign([TopicPartition(topic, bucket, 0)])
            while True:
                message = consumer.poll(120)
                assert message is not None, "no end of the partition in 30 s"
                if message.error() is not None:
                    break
                value = json.loads(message.value() or b"")
                row = value["before"] if value["op"] == "d" else value["after"]
                found.append(f"{OP_KINDS[value['op']]} {row['dt']} {row['id']} {row['price']}")
    finally:
        consumer.close()
    return found


def of_key(log: list[str], key: str) -> list[str]:
    """Return the changes of one key, ``"a 1"``, in order."""
    return [change for change in log if " ".join(change.split()[1:3]) == key]


def assert_every_start_leads_to_the_table(table: DynamicTable, untracked: str) -> None:
    """Check that each snapshot plus the log after it equals the table, partition ``untracked`` excluded."""
    tracked = {row for row in content(table) if not row.startswith(untracked)}
    for snapshot_id in table.inspect.snapshots().column("snapshot_id").to_pylist():
        changes = streamed(table, StreamPosition(snapshot_id=snapshot_id, split_index=0))
        seen = {row for row in applied(changes) if not row.startswith(untracked)}
        assert seen == tracked, f"from snapshot {snapshot_id}"
