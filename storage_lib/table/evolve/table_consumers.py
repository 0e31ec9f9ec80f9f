"""``table.consumers``: registered readers, whose unread snapshots do not expire.

What changes them raises ``NotFoundError`` if the table was dropped, also if another one has its name now.
"""

from __future__ import annotations

from datetime import timedelta

from storage_lib.errors import InvalidInputError, SnapshotExpiredError
from storage_lib.file_store.snapshot.consumer_directory import Consumer
from storage_lib.table.protocol.table_context import TableContext


class TableConsumers:
    """Consumers of a table or of one of its branches: readers whose unread snapshots do not expire."""

    def __init__(self, context: TableContext) -> None:
        self._table = context.name
        self._environment = context.environment
        self._file_store = context.file_store

    def create(self, name: str, next_snapshot_id: int | None = None) -> Consumer:
        """Register a reader that reads ``next_snapshot_id`` next (default: the snapshot after the newest).

        Registering it again moves it to ``next_snapshot_id``, forward or backward. Raises ``SnapshotExpiredError`` for
        an expired snapshot.
        """
        self._file_store.check_still_there()
        if next_snapshot_id is None:
            next_snapshot_id = (self._file_store.snapshots.latest_id() or 0) + 1
        if next_snapshot_id < 1:
            message = f"table {self._table}: snapshots count from 1, there is no {next_snapshot_id} to read next"
            raise InvalidInputError(message)
        directory = self._file_store.consumers
        known = {consumer.name: consumer for consumer in directory.load_all()}
        directory.put(name, next_snapshot_id)
        earliest_id = self._file_store.snapshots.earliest_id()
        if earliest_id is not None and next_snapshot_id < earliest_id:
            if name in known:
                directory.put(name, known[name].next_snapshot_id)
            else:
                directory.delete(name)
            message = (
                f"table {self._table}: snapshot {next_snapshot_id} has been expired, consumer {name!r} can't read it; "
                f"the earliest kept is {earliest_id}"
            )
            raise SnapshotExpiredError(message)
        return directory.load(name)

    def advance(self, name: str, next_snapshot_id: int) -> Consumer:
        """Record that a consumer reads ``next_snapshot_id`` next; ``NotFoundError`` for an unknown consumer."""
        self._file_store.consumers.load(name)
        return self.create(name, next_snapshot_id)

    def delete(self, name: str) -> None:
        """Delete a consumer; ``NotFoundError`` if it does not exist."""
        self._file_store.check_still_there()
        self._file_store.consumers.load(name)
        self._file_store.consumers.delete(name)

    def list(self) -> tuple[Consumer, ...]:
        """Return all consumers, sorted by name."""
        return tuple(self._file_store.consumers.load_all())

    def expire(self, *, older_than: timedelta) -> tuple[str, ...]:
        """Delete the consumers that have not advanced for this time; return their names."""
        self._file_store.check_still_there()
        before_ms = self._environment.clock.now_millis() - round(older_than.total_seconds() * 1000)
        names = tuple(consumer.name for consumer in self.list() if consumer.modified_ms < before_ms)
        for name in names:
            self._file_store.consumers.delete(name)
        return names
