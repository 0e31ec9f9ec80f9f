"""Finds committed changes that the log lacks, when a lease starts, to publish them again from the files.

A snapshot is created before its log transactions end, so a crash in between, a broker that timed a transaction
out, or a successor that aborted it leaves the log behind the files. At the start of its lease a writer therefore:

1. walks back to R, the newest snapshot created under a lease. When R's lease started, everything before R was in order;
2. commits the transactions that R names. If they commit now or did before, R's changes are in the log;
3. if Kafka answers *fenced*, reads the log to see whether R's records are visible after all. If not, R's changes
   in that bucket are missing, with those that R was to publish again (``SnapshotLogProperties.covers_from``);
4. adds the appends since R by writers that do not know the log.

Missing changes are read from the files that these snapshots added, and published by ``RepairedLog`` in a separate
commit, every record with the header ``repairs-snapshot``: a reader that started at that snapshot skips it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from storage_lib.errors import (
    LogRepairError,
    NotFoundError,
    SnapshotExpiredError,
    UnavailableError,
)
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.placing.layout import layout_of
from storage_lib.table.changelog.complete_appends import CompleteAppends
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.protocol.log_endings import not_in_log
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction, SnapshotLogProperties
from storage_lib.table.protocol.table_context import TableContext


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingChanges:
    """Changes that the log of one bucket lacks: those of ``snapshot_ids``, oldest first, all after ``covers_from``."""

    bucket: int
    covers_from: int
    snapshot_ids: tuple[int, ...]


class LogRepair:
    """Finds missing changes in the log of one table. Use it under a lease only.

    ``complete`` adds pre-images to changes, for a log that contains them; None otherwise.
    """

    def __init__(
        self, context: TableContext, *, log: LogStore, changes: SnapshotChanges, complete: CompleteAppends | None = None
    ) -> None:
        self._table = context.name
        self._file_store = context.file_store
        self.log = log
        self._changes = changes
        self._complete = complete
        self._ended: tuple[BucketTransaction, ...] = ()
        """Transactions known to be committed: those of the newest snapshot that this process has finished."""

    def find(self, newest: int | None) -> tuple[MissingChanges, ...]:
        """Commit open transactions up to snapshot ``newest`` and return the missing changes by bucket; usually none.

        The result holds only for a commit that follows exactly this snapshot: a stalled writer may still create the
        next one.
        """
        missing: dict[int, list[int]] = {}
        covers_from: dict[int, int] = {}
        newest_lease, foreign = self._newest_lease(newest)
        if newest_lease is not None:
            snapshot, part = newest_lease
            for bucket in self._lost_buckets(part):
                covers_from[bucket] = part.covers_from.get(bucket, snapshot.id - 1)
                missing[bucket] = list(self._appends(covers_from[bucket] + 1, snapshot.id))
        for snapshot in foreign:
            for bucket in self._changes.buckets(snapshot):
                covers_from.setdefault(bucket, snapshot.id - 1)
                missing.setdefault(bucket, []).append(snapshot.id)
        return tuple(
            MissingChanges(bucket=bucket, covers_from=covers_from[bucket], snapshot_ids=tuple(ids))
            for bucket, ids in sorted(missing.items())
        )

    def first_needed(self) -> int | None:
        """Return the oldest snapshot that the next ``find`` needs; call it before snapshots are expired.

        Needs no lease: an existing snapshot is committed, so any process may commit its transactions.
        """
        newest = self._file_store.snapshots.latest_id()
        newest_lease, foreign = self._newest_lease(newest)
        needed = [snapshot.id for snapshot in foreign[:1]]
        if newest_lease is not None:
            snapshot, part = newest_lease
            lost = self._perhaps_lost_buckets(snapshot, part)
            needed += [part.covers_from.get(bucket, snapshot.id - 1) + 1 for bucket in lost]
            if lost:
                needed.append(snapshot.id)
        needed += self._newest_of_ours(newest)
        return min(needed, default=newest)

    def finish(self, part: SnapshotLogProperties) -> tuple[BucketTransaction, ...]:
        """Commit the transactions of a created snapshot; return those whose records are not in the log.

        A commit is final, so a writer checks its own last one only once, which saves a round trip at every lease.
        """
        if part.transactions == self._ended:
            return ()
        lost = not_in_log(self.log, part.transactions)
        if not lost:
            self._ended = part.transactions
        return lost

    def is_of_log(self, snapshot: Snapshot, part: SnapshotLogProperties) -> bool:
        """Whether a snapshot's transactions may be in this log: not if it was recreated, or the table rewritten, since.

        Those of a log that was recreated ended with it; a rewritten table has another log.
        """
        ours = self._file_store.schema
        if snapshot.schema_id != ours.id and layout_of(self._file_store.version(snapshot.schema_id)) != layout_of(ours):
            return False
        return part.offsets is None or part.offsets.is_of(self.log.log_id())

    def changes_of(self, missing: MissingChanges) -> Iterator[tuple[int, pa.RecordBatch, pa.Array]]:
        """Yield the changes to publish, in order: snapshot id, rows and kinds.

        Raises ``LogRepairError`` if a snapshot, or a file it added, has been expired.
        """
        for snapshot_id in missing.snapshot_ids:
            try:
                snapshot = self._file_store.snapshots.load(snapshot_id)
                self._refuse_newer_schema(snapshot)
                for rows, kinds in self._changes_in(snapshot, missing.bucket):
                    yield snapshot_id, rows, kinds
            except (SnapshotExpiredError, NotFoundError) as error:
                message = (
                    f"table {self._table}: the changes of snapshot {snapshot_id} never reached the log of bucket "
                    f"{missing.bucket}, and its files have been expired, so they can't be published again. Readers of "
                    "the log have to start again from a snapshot: drop the log's topic, let the table create it again "
                    "(create_table(..., if_not_exists=True)) and restart the readers with log.scan=full"
                )
                raise LogRepairError(message) from error

    def _changes_in(self, snapshot: Snapshot, bucket: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        if self._complete is None:
            yield from self._changes.read(snapshot, bucket=bucket)
            return
        for split in self._changes.splits(snapshot):
            if split.bucket == bucket:
                yield from self._complete.read_split(split)

    def _refuse_newer_schema(self, snapshot: Snapshot) -> None:
        """Refuse to republish rows under an older schema: they would lack columns that were added since."""
        if snapshot.schema_id > self._file_store.schema.id:
            message = (
                f"table {self._table}: snapshot {snapshot.id}, whose changes have to be published again, was made "
                f"under schema {snapshot.schema_id}, newer than this writer's {self._file_store.schema.id}; load the "
                "table again, or restart the stream"
            )
            raise UnavailableError(message)

    def _perhaps_lost_buckets(self, snapshot: Snapshot, part: SnapshotLogProperties) -> list[int]:
        """Return the buckets whose changes this log lacks; all where it cannot tell."""
        written = [each.written.bucket for each in part.transactions]
        try:
            return self._lost_buckets(part) if written and self.is_of_log(snapshot, part) else written
        except UnavailableError:
            return written

    def _lost_buckets(self, part: SnapshotLogProperties) -> list[int]:
        return [lost.written.bucket for lost in self.finish(part)]

    def _newest_lease(self, newest: int | None) -> tuple[tuple[Snapshot, SnapshotLogProperties] | None, list[Snapshot]]:
        """Return the newest snapshot created under a lease, and the appends of other writers since, oldest first."""
        foreign: list[Snapshot] = []
        for snapshot in self._newest_first(newest):
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if part is not None and part.lease_number is not None:
                return (snapshot, part), foreign[::-1]
            if part is None and snapshot.commit_kind is CommitKind.APPEND:
                foreign.append(snapshot)
        return None, foreign[::-1]

    def _newest_of_ours(self, newest: int | None) -> list[int]:
        """Return the id of the newest snapshot by this library, which records the log's offsets; at most one id."""
        ours = (each.id for each in self._newest_first(newest) if SnapshotLogProperties.of_snapshot(each) is not None)
        return list(islice(ours, 1))

    def _newest_first(self, newest: int | None) -> Iterator[Snapshot]:
        """Yield the snapshots from ``newest`` down to the earliest kept; none if ``newest`` itself was expired.

        Callers nearly always need the newest only, so the earliest id is looked up after it.
        """
        if newest is None:
            return
        history = self._file_store.snapshots
        try:
            snapshot = history.load(newest)
        except SnapshotExpiredError:
            return
        yield snapshot
        for snapshot_id in range(newest - 1, (history.earliest_id() or newest) - 1, -1):
            yield history.load(snapshot_id)

    def _appends(self, first: int, last: int) -> Iterator[int]:
        """Yield the ids of the snapshots from ``first`` to ``last`` whose changes belong in the log."""
        for snapshot_id in range(first, last + 1):
            try:
                snapshot = self._file_store.snapshots.load(snapshot_id)
            except (SnapshotExpiredError, NotFoundError):
                yield snapshot_id  # ``changes_of`` raises the error with its remedy
                continue
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if snapshot.commit_kind is CommitKind.APPEND and (part is None or part.tracked):
                yield snapshot_id
