"""Finds what the log lacks of the snapshots, when a lease starts, and publishes it again from the files.

A snapshot is created before its log transactions end, so a crash in between, a broker that timed a transaction
out, or a successor that aborted it leaves the log behind the files. At the start of its lease a writer therefore:

1. walks back to the newest snapshot R made under a lease. Everything before R was in order when R's own lease started;
2. ends the transactions that R names. Ended now or before: R's changes are in the log;
3. where Kafka answers *fenced*, looks into the log whether R's records are visible after all. If not, R's changes
   in that bucket are missing, and with them what R itself was to publish again (``SnapshotLogProperties.covers_from``);
4. adds the appends made since R by writers that know nothing of a log.

Missing changes are read from the files that these snapshots added, and published by ``TableCommit`` in a commit of
its own, every record with the header ``repairs-snapshot``: a reader that started at that snapshot skips it.
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
from storage_lib.table.changelog.complete_appends import CompleteAppends
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.protocol.log_endings import not_in_log
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction, SnapshotLogProperties
from storage_lib.table.protocol.table_context import TableContext


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingChanges:
    """What the log of one bucket lacks: the changes of ``snapshot_ids``, oldest first, all after ``covers_from``."""

    bucket: int
    covers_from: int
    snapshot_ids: tuple[int, ...]


class LogRepair:
    """Looks after the log of one table. To be used under a lease only.

    ``complete`` is there if the log also holds what was there before a change.
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
        """Transactions known to have been committed: those of the newest snapshot that this process has dealt with."""

    def find(self, newest: int | None) -> tuple[MissingChanges, ...]:
        """End what was left open up to snapshot ``newest`` and return what the log lacks, by bucket; usually nothing.

        Only a commit upon exactly this snapshot knows that the log was in order, for a stalled writer may still create
        the next.
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
        """The oldest snapshot that the next ``find`` has to see; to be asked before any are expired.

        May be called without a lease: a snapshot that is there has decided, so its transactions may be ended by
        anybody.
        """
        newest = self._file_store.snapshots.latest_id()
        newest_lease, foreign = self._newest_lease(newest)
        needed = [snapshot.id for snapshot in foreign[:1]]
        if newest_lease is not None:
            snapshot, part = newest_lease
            try:
                lost = self._lost_buckets(part)
            except UnavailableError:
                # Not known, so assume the worst.
                lost = [each.written.bucket for each in part.transactions]
            needed += [part.covers_from.get(bucket, snapshot.id - 1) + 1 for bucket in lost]
            if lost:
                needed.append(snapshot.id)
        needed += self._newest_of_ours(newest)
        return min(needed, default=newest)

    def finish(self, part: SnapshotLogProperties) -> tuple[BucketTransaction, ...]:
        """Commit the transactions of a snapshot that was created; those whose records did not get into the log.

        A commit is final, so a writer asks about its own last one only once: that saves a round trip at every lease.
        """
        if part.transactions == self._ended:
            return ()
        lost = not_in_log(self.log, part.transactions)
        if not lost:
            self._ended = part.transactions
        return lost

    def changes_of(self, missing: MissingChanges) -> Iterator[tuple[int, pa.RecordBatch, pa.Array]]:
        """What to publish, in order: snapshot id, rows and kinds.

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
        """Rows published again under an older schema would lack the columns that came since."""
        if snapshot.schema_id > self._file_store.schema.id:
            message = (
                f"table {self._table}: snapshot {snapshot.id}, whose changes have to be published again, was made "
                f"under schema {snapshot.schema_id}, newer than this writer's {self._file_store.schema.id}; load the "
                "table again, or restart the stream"
            )
            raise UnavailableError(message)

    def _lost_buckets(self, part: SnapshotLogProperties) -> list[int]:
        return [lost.written.bucket for lost in self.finish(part)]

    def _newest_lease(self, newest: int | None) -> tuple[tuple[Snapshot, SnapshotLogProperties] | None, list[Snapshot]]:
        """The newest snapshot made under a lease, and the appends of other writers since, oldest first."""
        foreign: list[Snapshot] = []
        for snapshot in self._newest_first(newest):
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if part is not None and part.lease_number is not None:
                return (snapshot, part), foreign[::-1]
            if part is None and snapshot.commit_kind is CommitKind.APPEND:
                foreign.append(snapshot)
        return None, foreign[::-1]

    def _newest_of_ours(self, newest: int | None) -> list[int]:
        """The newest snapshot that tells the log's offsets: those of other writers don't."""
        told = (each.id for each in self._newest_first(newest) if SnapshotLogProperties.of_snapshot(each) is not None)
        return list(islice(told, 1))

    def _newest_first(self, newest: int | None) -> Iterator[Snapshot]:
        """The snapshots from ``newest`` down to the earliest kept; none if ``newest`` itself was expired.

        The newest is nearly always all that is wanted, so the storage is asked for the earliest only after it.
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
        """Ids of the snapshots in between whose changes belong into the log."""
        for snapshot_id in range(first, last + 1):
            try:
                snapshot = self._file_store.snapshots.load(snapshot_id)
            except (SnapshotExpiredError, NotFoundError):
                yield snapshot_id  # refused with its remedy once it is to be read
                continue
            part = SnapshotLogProperties.of_snapshot(snapshot)
            if snapshot.commit_kind is CommitKind.APPEND and (part is None or part.tracked):
                yield snapshot_id
