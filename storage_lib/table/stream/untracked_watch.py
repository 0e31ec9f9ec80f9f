"""Detects commits whose changes a stream does not receive, and warns or fails (``scan.on-untracked = warn | fail``).

    snapshot   5 tracked    6 untracked   7 compaction   8 tracked
    log        … 16         …             …              17 … 40
                            ▲ reported before any record from 17 on is returned

An untracked commit changes the files but not the log, so a reader that combines earlier files with the later log misses
its changes. A stream checks every snapshot once; its position records the last one checked. Each check reads the id of
the newest snapshot, and each snapshot's file once.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from storage_lib.errors import SnapshotExpiredError, UntrackedCommitError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import FIRST_ID
from storage_lib.file_store.store import FileStore
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.options.table_options import UntrackedScan
from storage_lib.schema.placing.layout import layout_of
from storage_lib.table.protocol.snapshot_log_properties import REWROTE, SnapshotLogProperties
from storage_lib.table.protocol.stream_position import StreamPosition
from storage_lib.table.stream.log_offset_resolver import reported_offsets

_PARTITIONS_NAMED = 5
_REMEDY = (
    "Start the stream again with log.scan=full (in Spark: under a checkpoint of its own), which reads the table as it "
    "is; or go on without these changes, by scan.on-untracked=warn or ignore"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The result of a check of the snapshots: the log may be read up to ``end``.

    ``watched_snapshot_id`` is the newest checked snapshot; ``has_warned``: a warning was logged, which must not be
    repeated.
    """

    end: LogOffsets
    watched_snapshot_id: int
    has_warned: bool


class UntrackedWatch:
    """Checks snapshots for the streams of one table. Thread-safe."""

    def __init__(self, *, table: str, file_store: FileStore, on_untracked: UntrackedScan) -> None:
        self._table = table
        self._file_store = file_store
        self._fails = on_untracked is UntrackedScan.FAIL

    def check(self, start: StreamPosition, offsets: LogOffsets, end: LogOffsets) -> Outlook:
        """Return how far a stream at ``offsets`` may read a log that ends at ``end``, which the caller read earlier.

        Changes committed before an untracked commit may still be read. Raises ``UntrackedCommitError`` if only later
        changes remain, ``SnapshotExpiredError`` if snapshots expired before they were checked (both only with "fail").
        """
        history = self._file_store.snapshots
        newest = history.latest_id() or 0
        watched = self._watched(start, offsets)
        has_warned = self._report_expired(watched, newest)
        for snapshot in self._untracked(watched, newest):
            if not self._fails:
                self.warn_of(snapshot)
                has_warned = True
                continue
            before = self._offsets_at(snapshot, offsets.log_id)
            if before is None or all(offsets.of(bucket) >= offset for bucket, offset in before.next_offsets.items()):
                raise self.error_of(snapshot)
            up_to_it = {
                bucket: min(offset, max(offsets.of(bucket), before.of(bucket)))
                for bucket, offset in end.next_offsets.items()
            }
            return Outlook(end=LogOffsets(up_to_it, end.log_id), watched_snapshot_id=snapshot.id - 1, has_warned=False)
        return Outlook(end=end, watched_snapshot_id=max(watched, newest), has_warned=has_warned)

    def stops_at(self, snapshot: Snapshot) -> bool:
        """Return whether a stream that follows snapshots must stop before this one; with "warn" only log a warning."""
        if not self._is_untracked(snapshot):
            return False
        if not self._fails:
            self.warn_of(snapshot)
        return self._fails

    def warn_of(self, snapshot: Snapshot) -> None:
        """Log a warning about the snapshot."""
        _log.warning("%s. Its changes are missing downstream", self._text(snapshot))

    def error_of(self, snapshot: Snapshot) -> UntrackedCommitError:
        """Return the error to raise before any change after the snapshot is returned."""
        return UntrackedCommitError(f"{self._text(snapshot)}. {_REMEDY}")

    def _watched(self, start: StreamPosition, offsets: LogOffsets) -> int:
        """Return the last snapshot checked for this stream; if none was, the tracked one at its position."""
        if start.watched_snapshot_id is not None:
            return start.watched_snapshot_id
        history = self._file_store.snapshots
        newest, earliest = history.latest_id(), history.earliest_id()
        if newest is None or earliest is None:
            return start.snapshot_id
        # Offsets never decrease within a layout, so a binary search finds the last snapshot that the position has
        # reached.
        low = first = max(earliest, start.snapshot_id, self._first_of_layout(earliest, newest))
        high = newest + 1
        while low < high:
            middle = (low + high) // 2
            reached = self._offsets_at(history.load(middle), offsets.log_id) or LogOffsets()
            if all(offsets.of(bucket) >= offset for bucket, offset in reached.next_offsets.items()):
                low = middle + 1
            else:
                high = middle
        for snapshot_id in range(low - 1, first - 1, -1):
            part = SnapshotLogProperties.of_snapshot(history.load(snapshot_id))
            if part is not None and part.tracked:
                return snapshot_id
        return start.snapshot_id

    def _first_of_layout(self, earliest: int, newest: int) -> int:
        """Return the first snapshot of the current layout; schema ids never decrease from one snapshot to the next."""
        began_with = layout_of(self._file_store.schema)
        return (
            bisect_left(
                range(earliest, newest + 1),
                began_with,
                key=lambda each: self._file_store.snapshots.load(each).schema_id,
            )
            + earliest
        )

    def _report_expired(self, watched: int, newest: int) -> bool:
        earliest = self._file_store.snapshots.earliest_id() or FIRST_ID
        if newest == watched or watched + 1 >= earliest:
            return False
        text = (
            f"table {self._table}: snapshots {watched + 1} to {earliest - 1} were expired before this stream looked at "
            "them, so it is not known whether there was an untracked commit among them"
        )
        if self._fails:
            message = (
                f"{text}. {_REMEDY}. Register the stream as a consumer (table.consumers.create), so that expiry waits "
                "for it"
            )
            raise SnapshotExpiredError(message)
        _log.warning("%s", text)
        return True

    def _untracked(self, after: int, last: int) -> Iterator[Snapshot]:
        history = self._file_store.snapshots
        earliest = history.earliest_id() or FIRST_ID
        for snapshot_id in range(max(after + 1, earliest), last + 1):
            snapshot = history.load(snapshot_id)
            if self._is_untracked(snapshot):
                yield snapshot

    def _is_untracked(self, snapshot: Snapshot) -> bool:
        """Return whether the snapshot changed the table's rows without publishing the changes to streams.

        Appends of other engines are published by our next writer, or read by streams that follow snapshots; their
        overwrites are not.
        """
        if REWROTE in snapshot.properties:
            return False  # the same rows in other buckets
        part = SnapshotLogProperties.of_snapshot(snapshot)
        silent = (part is not None and not part.tracked and snapshot.commit_kind is CommitKind.APPEND) or (
            (part is None or not part.tracked) and snapshot.commit_kind is CommitKind.OVERWRITE
        )
        return silent and bool(self._file_store.scan.changed_buckets(snapshot))

    def _offsets_at(self, snapshot: Snapshot, log_id: str | None) -> LogOffsets | None:
        """Return the offsets of the log with this id at a snapshot; None if unknown."""
        reported = reported_offsets(self._file_store.snapshots, snapshot)
        return None if reported is None else reported.in_log(log_id)

    def _text(self, snapshot: Snapshot) -> str:
        partitions = sorted({partition for partition, _ in self._file_store.scan.changed_buckets(snapshot)})
        named = "; ".join(self._file_store.scan.partition_text(each) for each in partitions[:_PARTITIONS_NAMED])
        more = len(partitions) - _PARTITIONS_NAMED
        return (
            f"table {self._table}: snapshot {snapshot.id}, an untracked {snapshot.commit_kind} by "
            f"{snapshot.commit_user}, changed rows of which streams are not told, in partition {named}"
            f"{f' and {more} more' if more > 0 else ''}"
        )
