"""Compares the eventual table with its topic during the soak: each record of the log is in the files exactly once."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from storage_lib import DynamicTable
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.soak.eventual_model import (
    EVENTUAL_STREAM,
    EVENTUAL_WRITERS,
    eventual_changes,
    eventual_rows,
    number_of,
    partition_of,
)
from tests.soak.soak_worker import acknowledged, append_to_log
from tests.support.orders_table import applied, content

_POLLS_MAX = 100_000


@dataclass
class _Bucket:
    """Last known content of one bucket's files, and the later records by offset."""

    content: dict[str, str] = field(default_factory=dict)
    records: list[tuple[int, str, str | None]] = field(default_factory=list)
    reached: int = 0
    newest: dict[str, int] = field(default_factory=lambda: defaultdict(int))


class EventualChecker:
    """Reads the topic from its first record to its last, by confluent-kafka."""

    def __init__(self, table: DynamicTable, servers: str, seed: int, notes: Path) -> None:
        self._table = table
        self._seed = seed
        self._notes = notes
        self._names = {partition_of(name): name for name in EVENTUAL_WRITERS}
        self._buckets = [_Bucket() for _ in range(table.schema.bucket_count)]
        self.files_checked = 0
        self.records_checked = 0
        assert table.log is not None
        topic = table.log.description()["log.kafka.topic"]
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "soak", "isolation.level": "read_committed", "log_level": 0}
            | {"enable.auto.commit": False, "auto.offset.reset": "error"}
        )
        self._consumer.assign([TopicPartition(topic, bucket, 0) for bucket in range(len(self._buckets))])

    def check(self, *, is_still: bool = False) -> None:
        """Check that acknowledged records are in the log, and that the files equal the log up to their offsets."""
        noted = {name: acknowledged(self._notes, name) for name in EVENTUAL_WRITERS}
        snapshot = self._table.context.file_store.snapshots.latest()
        self._read_topic()
        for name, number in noted.items():
            told = max(bucket.newest[name] for bucket in self._buckets)
            assert told >= number or not is_still, f"{number} of {name} was acknowledged, but the log ends at {told}"
        if snapshot is None:
            return
        part = SnapshotLogProperties.of_snapshot(snapshot)
        offsets = LogOffsets() if part is None or part.offsets is None else part.offsets
        if any(bucket.reached < offsets.of(number) for number, bucket in enumerate(self._buckets)):
            assert not is_still, f"the files end at {offsets.to_json()}, but the topic before that"
            return  # An outage keeps the checker from reading records that the files already contain.
        for number, bucket in enumerate(self._buckets):
            _apply(bucket, offsets.of(number))
        expected = {row for bucket in self._buckets for row in bucket.content.values()}
        found = content_at(self._table, snapshot.id)
        assert found == expected, f"snapshot {snapshot.id} of the eventual table: {sorted(found ^ expected)[:5]}"
        self.files_checked += 1

    def check_end(self) -> None:
        """Repeat each writer's last commit; then check that files, topic and model agree."""
        changes: list[str] = []
        for name in EVENTUAL_WRITERS:
            last = acknowledged(self._notes, name) + 1
            if name == EVENTUAL_STREAM:
                append_to_log(self._table, eventual_rows(self._seed, name, last), name, last)
            else:
                self._table.append(eventual_rows(self._seed, name, last), commit_user=name, commit_identifier=last)
            changes += [
                change for number in range(1, last + 1) for change in eventual_changes(self._seed, name, number)
            ]
        self._table.maintenance.tier_log()
        self.check(is_still=True)
        assert content(self._table) == applied(changes), "the eventual table is not what was written to it"

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _read_topic(self) -> None:
        for _ in range(_POLLS_MAX):
            message = self._consumer.poll(0.1)
            if message is None:
                return
            value = message.value()
            if message.error() is None and value is not None:
                self._take(message.partition() or 0, message.offset() or 0, json.loads(value))

    def _take(self, bucket: int, offset: int, change: dict[str, dict[str, int]]) -> None:
        row = change["after"] or change["before"]
        name, number = self._names[str(row["dt"])], number_of(row["price"])
        place = self._buckets[bucket]
        assert number >= place.newest[name], f"{name}: {number} comes after {place.newest[name]} at {bucket}@{offset}"
        place.newest[name] = number
        key = f"{row['dt']} {row['id']}"
        place.records.append((offset, key, f"{key} {row['price']}" if change["after"] else None))
        place.reached = offset + 1
        self.records_checked += 1


def content_at(table: DynamicTable, snapshot_id: int) -> set[str]:
    """Return the rows of one snapshot, each as ``"a 1 10"``."""
    found = table.to_arrow(snapshot_id=snapshot_id).to_pylist()
    return {f"{row['dt']} {row['id']} {row['price']}" for row in found}


def _apply(bucket: _Bucket, end: int) -> None:
    taken = 0
    for offset, key, row in bucket.records:
        if offset >= end:
            break
        taken += 1
        if row is None:
            bucket.content.pop(key, None)
        else:
            bucket.content[key] = row
    del bucket.records[:taken]
