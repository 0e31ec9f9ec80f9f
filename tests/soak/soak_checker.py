"""Compares files, topic and model during the soak; raises ``AssertionError`` with the location of a difference."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition

from storage_lib import DynamicTable, SnapshotExpiredError
from tests.soak.soak_model import OVERWRITE, SILENT, WRITERS, Key, SoakModel
from tests.soak.soak_worker import acknowledged, read_on
from tests.support.committed_orders import committed_log, of_key
from tests.support.orders_table import content

_CONSUMER = "soak-checker"
_POLLS_MAX = 100_000


class SoakChecker:
    """Reads snapshots and topic from first to last, each record once; the topic by confluent-kafka."""

    def __init__(self, table: DynamicTable, servers: str, seed: int, notes: Path) -> None:
        self._table = table
        self._servers = servers
        self._notes = notes
        self._seen: dict[Key, list[int | None]] = defaultdict(list)
        self._places: dict[Key, list[str]] = defaultdict(list)
        self._next_snapshot = 1
        self.model = SoakModel(seed)
        self.files_checked = 0
        self.records_checked = 0
        assert table.log is not None
        topic = table.log.description()["log.kafka.topic"]
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "soak", "isolation.level": "read_committed", "log_level": 0}
            | {"enable.auto.commit": False, "auto.offset.reset": "error"}
        )
        # On a busy machine, hundreds of snapshots pass between two checks: none may expire before it was followed.
        table.consumers.create(_CONSUMER, 1)
        self._consumer.assign([TopicPartition(topic, bucket, 0) for bucket in range(table.schema.bucket_count)])

    def check(self) -> None:
        """Check that acknowledged commits exist, the newest snapshot is the model, and the topic has nothing else."""
        noted = {name: acknowledged(self._notes, name) for name in WRITERS}
        self._read_topic()
        self._follow_snapshots()
        for name, number in noted.items():
            committed = self.model.newest.get(name, 0)
            assert committed >= number or name == OVERWRITE, f"{name}: {number} acknowledged, {committed} committed"
        for key, seen in self._seen.items():
            told = self.model.told.get(key, [])
            assert seen == told[: len(seen)], self._complaint(key)

    def check_end(self) -> None:
        """Final check, after all writers stopped: topic and model agree, and so do the stream and the table."""
        self.check()
        for key, told in self.model.told.items():
            assert self._seen[key] == told, self._complaint(key)
        tracked = {f"{dt} {id_}": price for (dt, id_), price in self.model.content.items() if dt != SILENT}
        streamed = {key: price for key, price in read_on(self._table, self._notes).items() if key[0] != SILENT}
        assert streamed == tracked, "what the reader made of the stream"

    def _complaint(self, key: Key) -> str:
        again = of_key(committed_log(self._table, self._servers), f"{key[0]} {key[1]}")
        return (
            f"key {key}: the topic tells {self._seen[key]}, the snapshots {self.model.told.get(key)}; newest records "
            f"{self._places[key][-4:]}, newest snapshots {self.model.tellers.get(key, [])[-4:]}; read again, the topic "
            f"has {len(again)} changes, the last {again[-4:]}"
        )

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _follow_snapshots(self) -> None:
        history = self._table.context.file_store.snapshots
        newest = history.latest_id() or 0
        for snapshot_id in range(self._next_snapshot, newest + 1):
            self.model.follow(history.load(snapshot_id))
        if newest < self._next_snapshot:
            return
        self._next_snapshot = newest + 1
        self._table.consumers.advance(_CONSUMER, self._next_snapshot)
        try:
            files = {
                (row["dt"], row["id"]): row["price"] for row in self._table.to_arrow(snapshot_id=newest).to_pylist()
            }
        except SnapshotExpiredError:
            return
        assert files == self.model.content, f"snapshot {newest}: {_difference(files, self.model.content)}"
        self.files_checked += 1

    def _read_topic(self) -> None:
        """Read all records committed so far; an outage of the broker is not an error here."""
        for _ in range(_POLLS_MAX):
            message = self._consumer.poll(0.1)
            if message is None:
                return
            error, value = message.error(), message.value()
            if error is not None:
                lost = error.code() == KafkaError._AUTO_OFFSET_RESET
                assert not lost, f"the topic lost records: {error}"
            elif value is not None:
                change = json.loads(value)
                row = change["after"] or change["before"]
                key = (row["dt"], row["id"])
                self._seen[key].append(row["price"] if change["after"] else None)
                self._places[key].append(f"{message.partition()}@{message.offset()} {message.headers() or ''}")
                self.records_checked += 1


def _difference(found: dict[Key, int], expected: dict[Key, int]) -> str:
    keys = [key for key in {*found, *expected} if found.get(key) != expected.get(key)]
    return ", ".join(f"{key}: {found.get(key)}, not {expected.get(key)}" for key in sorted(keys)[:5])


def assert_same_content(table: DynamicTable, checker: SoakChecker) -> None:
    """Check the newest snapshot through a newly opened table."""
    expected = {f"{dt} {id_} {price}" for (dt, id_), price in checker.model.content.items()}
    assert content(table) == expected
