"""Commits whose changes a stream does not get, and what it does then (``scan.on-untracked = warn | fail``).

    snapshot   5 tracked    6 untracked   7 compaction   8 tracked
    log        … 16         …             …              17 … 40
                            ▲ told before anything from 17 on is handed out

An untracked commit changes the files, not the log, so a reader of the files before it and of the log after it no
longer has the table. A stream looks at every snapshot once; its position remembers how far it has looked. That costs
the id of the newest snapshot a look, and each snapshot's own file once.
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
from storage_lib.table.stream.log_offset_resolver import offsets_told

_PARTITIONS_NAMED = 5
_REMEDY = (
    "Start the stream again with log.scan=full (in Spark: under a checkpoint of its own), which reads the table as it "
    "is; or go on without these changes, by scan.on-untracked=warn or ignore"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The result of a check of the snapshots: the log may be read up to ``end``.

    ``watched_snapshot_id`` is the newest snapshot looked at; ``has_warned``: a warning was logged, which
    must not be repeated.
    """

    end: LogOffsets
    watched_snapshot_id: int
    has_warned: bool


class UntrackedWatch:
    """Looks after one table's streams. Thread-safe."""

    def __init__(self, *, table: str, file_store: FileStore, on_untracked: UntrackedScan) -> None:
        self._table = table
        self._file_store = file_store
        self._fails = on_untracked is UntrackedScan.FAIL

    def look(self, start: StreamPosition, offsets: LogOffsets, end: LogOffsets) -> Outlook:
        """How far a stream at ``offsets`` may read a log that ends at ``end``, which was asked for before.

        Everything that was committed before an untracked commit may still be read. Raises ``UntrackedCommitError``
        where nothing is left but what comes after it, ``SnapshotExpiredError`` where that can't be known any more.
        """
        history = self._file_store.snapshots
        newest = history.latest_id() or 0
        watched = self._watched(start, offsets)
        has_warned = self._tell_what_was_expired(watched, newest)
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
        """Whether a stream that follows snapshots ends before this one; where it should only be warned, it is."""
        if not self._is_untracked(snapshot):
            return False
        if not self._fails:
            self.warn_of(snapshot)
        return self._fails

    def warn_of(self, snapshot: Snapshot) -> None:
        """Say it where the process logs."""
        _log.warning("%s. Its changes are missing downstream", self._text(snapshot))

    def error_of(self, snapshot: Snapshot) -> UntrackedCommitError:
        """To be raised before anything that came after the snapshot is handed out."""
        return UntrackedCommitError(f"{self._text(snapshot)}. {_REMEDY}")

    def _watched(self, start: StreamPosition, offsets: LogOffsets) -> int:
        """The snapshot up to which this stream was watched; of one that was not, the tracked one that it stands at."""
        if start.watched_snapshot_id is not None:
            return start.watched_snapshot_id
        history = self._file_store.snapshots
        newest, earliest = history.latest_id(), history.earliest_id()
        if newest is None or earliest is None:
            return start.snapshot_id
        # Offsets never fall within a layout, so those of a snapshot further on are further on in some bucket.
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
        """The snapshot that the present log began with; ids of schemas never fall from one snapshot to the next."""
        began_with = layout_of(self._file_store.schema)
        return (
            bisect_left(
                range(earliest, newest + 1),
                began_with,
                key=lambda each: self._file_store.snapshots.load(each).schema_id,
            )
            + earliest
        )

    def _tell_what_was_expired(self, watched: int, newest: int) -> bool:
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
        """Whether it changed what the table holds without telling streams.

        Appends of other engines are published by our next writer, or read by streams that follow snapshots; their
        overwrites are not.
        """
        if REWROTE in snapshot.properties:
            return False  # the same rows, in other places
        part = SnapshotLogProperties.of_snapshot(snapshot)
        silent = (part is not None and not part.tracked and snapshot.commit_kind is CommitKind.APPEND) or (
            (part is None or not part.tracked) and snapshot.commit_kind is CommitKind.OVERWRITE
        )
        return silent and bool(self._file_store.scan.delta(snapshot))

    def _offsets_at(self, snapshot: Snapshot, log_id: str | None) -> LogOffsets | None:
        """Where that log stood."""
        told = offsets_told(self._file_store.snapshots, snapshot)
        return None if told is None else told.in_log(log_id)

    def _text(self, snapshot: Snapshot) -> str:
        partitions = sorted({entry.partition for entry in self._file_store.scan.delta(snapshot)})
        named = "; ".join(self._file_store.scan.partition_text(each) for each in partitions[:_PARTITIONS_NAMED])
        more = len(partitions) - _PARTITIONS_NAMED
        return (
            f"table {self._table}: snapshot {snapshot.id}, an untracked {snapshot.commit_kind} by "
            f"{snapshot.commit_user}, changed rows of which streams are not told, in partition {named}"
            f"{f' and {more} more' if more > 0 else ''}"
        )
