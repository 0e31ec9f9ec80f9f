"""Resolves the snapshot to read: the newest, or one named by id, tag or time."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.schema.encoding.moment import Moment, optional_millis
from storage_lib.table.protocol.table_context import TableContext


class TimeTravel:
    """Resolves the snapshot of a read; a read that names none follows the table's ``scan.*`` options."""

    def __init__(self, context: TableContext) -> None:
        self._table = context.name
        self._file_store = context.file_store
        self._options = context.options

    def snapshot(
        self, *, snapshot_id: int | None = None, tag: str | None = None, timestamp: Moment | None = None
    ) -> Snapshot | None:
        """Return the snapshot to read; None for a table without a commit.

        At most one of the three may be given. Raises ``InvalidInputError`` for several, ``NotFoundError`` for an
        unknown snapshot, tag or time, ``SnapshotExpiredError`` for an expired one.
        """
        timestamp_millis = optional_millis(timestamp, "timestamp")
        if snapshot_id is None and tag is None and timestamp_millis is None:
            snapshot_id, tag = self._options.scan_snapshot_id, self._options.scan_tag_name
            timestamp_millis = self._options.scan_timestamp_millis
        at = timestamp_millis if timestamp is None else timestamp
        given = [value for value in (snapshot_id, tag, at) if value is not None]
        if len(given) > 1:
            message = (
                f"table {self._table}: a read is of one snapshot, but was given {' and '.join(map(repr, given))}: name "
                "its snapshot id, its tag or its time, not several of these"
            )
            raise InvalidInputError(message)
        if tag is not None:
            return self._file_store.tags.load(tag).snapshot
        if timestamp_millis is not None:
            return self._file_store.snapshots.at(timestamp_millis)
        history = self._file_store.snapshots
        return history.latest() if snapshot_id is None else history.load(snapshot_id)
