"""Resolves where a stream continues in the log, after a snapshot or since a time, and checks a position's offsets.

Offsets of a recreated log, and records that retention has deleted, are reported rather than skipped
(docs/decisions/0026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import LogOffsetsExpiredError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
    from storage_lib.file_store.store import FileStore
    from storage_lib.io.environment import Clock
    from storage_lib.log_store.log_store import LogStore


class LogOffsetResolver:
    """Resolves snapshots and times to offsets in the log of one table."""

    def __init__(self, *, table: str, file_store: FileStore, clock: Clock) -> None:
        self._table = table
        self._file_store = file_store
        self._clock = clock

    def after(self, log: LogStore, snapshot_id: int) -> LogOffsets:
        """Return the offsets at which a reader of the snapshot continues: the start, if the log was recreated after it.

        Raises ``LogOffsetsExpiredError`` if later changes are only in the deleted log, and ``SnapshotExpiredError`` if
        no remaining snapshot records the offsets.
        """
        offsets, log_id = self._offsets_reported_by(snapshot_id), log.log_id()
        if offsets.is_of(log_id):
            return offsets.in_log(log_id)
        history = self._file_store.snapshots
        for snapshot in tracked_snapshots(history, snapshot_id, history.latest_id() or 0):
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if part is not None and part.offsets is not None and not part.offsets.is_of(log_id):
                message = (
                    f"table {self._table}: the log was recreated after snapshot {snapshot.id}, whose changes a stream "
                    f"that began with snapshot {snapshot_id} can't read any more. Start it again (log.scan=full)"
                )
                raise LogOffsetsExpiredError(message)
        return offsets.in_log(log_id)

    def since(self, log: LogStore, millis: int) -> LogOffsets:
        """Return the offsets of the first record at or after that time, for every bucket.

        Raises ``LogOffsetsExpiredError`` if retention may have deleted records of that time or later.
        """
        offsets, earliest = log.offsets_at(millis), log.earliest_offsets()
        cut = [bucket for bucket, offset in earliest.next_offsets.items() if 0 < offset >= offsets.of(bucket)]
        retention_ms = log.retention_ms() if cut else None
        if cut and (retention_ms is None or millis < self._clock.now_millis() - retention_ms):
            message = (
                f"table {self._table}: the log of bucket {cut[0]} does not hold all that was written since {millis} "
                "(log.scan.timestamp-millis): records were deleted when log.retention was over. Start at a later time, "
                "or with the newest snapshot (log.scan=full)"
            )
            raise LogOffsetsExpiredError(message)
        return offsets

    def refuse_other_log(self, log: LogStore, offsets: LogOffsets) -> None:
        """Raise ``LogOffsetsExpiredError`` for offsets of a log that was deleted."""
        if offsets.log_id is not None and not offsets.is_of(log.log_id()):
            message = (
                f"table {self._table}: the log was recreated since the stream's position was taken, so it is not known "
                "what came between. Start the stream again without it (log.scan=full; a query in Spark: with a "
                "checkpoint of its own)"
            )
            raise LogOffsetsExpiredError(message)

    def commits_between(self, start: LogOffsets, readable: Mapping[int, int], rows_max: int | None) -> dict[int, int]:
        """Return the end of the newest commit up to ``readable`` and within about ``rows_max`` records of ``start``.

        At least one readable commit is included, if there is one. By bucket, for buckets whose end is after ``start``.
        """
        history = self._file_store.snapshots
        newest, earliest = history.latest_id() or 0, history.earliest_id() or 1
        found: dict[int, int] = {}
        for snapshot_id in range(newest, earliest - 1, -1):
            part = SnapshotLogProperties.of_snapshot(history.load(snapshot_id))
            if part is None or part.offsets is None:
                continue
            ends = {bucket: end for bucket, end in part.offsets.next_offsets.items() if end > start.of(bucket)}
            if not ends:
                break
            if any(end > readable.get(bucket, start.of(bucket)) for bucket, end in ends.items()):
                continue
            if found and (rows_max is None or sum(found[each] - start.of(each) for each in found) <= rows_max):
                break
            found = ends
        return found

    def _offsets_reported_by(self, snapshot_id: int) -> LogOffsets:
        """Return the offsets of the snapshot, or of this library's newest one before it: other writers drop them."""
        history = self._file_store.snapshots
        reported = reported_offsets(history, history.load(snapshot_id))
        if reported is not None:
            return reported
        if (history.earliest_id() or 1) > 1:
            message = (
                f"table {self._table}: no snapshot up to {snapshot_id} tells the log's offsets any more (other writers "
                "drop them, and ours have been expired). Start the stream with log.scan=latest"
            )
            raise SnapshotExpiredError(message)
        return LogOffsets()


def tracked_snapshots(history: SnapshotHistory, after: int, last: int) -> Iterator[Snapshot]:
    """Yield the snapshots whose changes streams receive; of overwrites only the tracked ones."""
    for snapshot_id in range(after + 1, last + 1):
        snapshot = history.load(snapshot_id)
        part = SnapshotLogProperties.of_snapshot(snapshot)
        is_append = snapshot.commit_kind is CommitKind.APPEND and (part is None or part.tracked)
        is_tracked_overwrite = snapshot.commit_kind is CommitKind.OVERWRITE and part is not None and part.tracked
        if is_append or is_tracked_overwrite:
            yield snapshot


def reported_offsets(history: SnapshotHistory, snapshot: Snapshot | None) -> LogOffsets | None:
    """Return the newest offsets at or before ``snapshot``; None if no remaining snapshot records any.

    Other writers drop this library's properties, so their snapshots are skipped.
    """
    for each in history.up_to(snapshot):
        part = SnapshotLogProperties.of_snapshot(each)
        if part is not None and part.offsets is not None:
            return part.offsets
    return None
