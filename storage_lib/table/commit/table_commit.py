"""Commits over both stores: the snapshot is the commit point, then the log transactions that it names are committed.

    open      acquire the lease ─▶ end what the newest snapshot left open ─▶ repair the log ─▶ read the base snapshot
    tasks     write files and log records, flushed but open                            (TableWrite)
    commit 1  already there under this identity? ─▶ end its transactions, drop the new files, done
           2  create snapshot-N, naming offsets and transactions           ◀── VISIBLE, DURABLE, DECIDED
           3  end the transactions; what proves lost is published again at once
           4  release the lease

A commit that fails before step 2 leaves nothing behind. After a later crash the next ``open`` completes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    StorageError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.io.after_commit import after_commit
from storage_lib.table.commit.eventual_commit import EventualCommit
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.repaired_log import RepairedLog
from storage_lib.table.commit.snapshot_publisher import SnapshotPublisher
from storage_lib.table.commit.writer_leases import WriterLeases
from storage_lib.table.protocol.lease import Lease
from storage_lib.table.protocol.snapshot_log_properties import BucketTransaction
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourcesOf, as_they_were
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import TableCommitMessage, WriteContext
from storage_lib.table.write.task_log_writer import two_tasks_for_one_bucket

if TYPE_CHECKING:
    from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory


class TableCommit:
    """Opens and commits appends to one table; every writer of it goes through here.

    ``repair`` repairs the log; None for a table without one. Appends that commute (no key and no log) need no lease.
    ``eventual`` commits rows that are written to the log first (``log.consistency=eventual``); None for other tables.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        publisher: SnapshotPublisher,
        writer_leases: WriterLeases,
        repair: LogRepair | None,
        eventual: EventualCommit | None = None,
    ) -> None:
        self._table = context.name
        self._file_store = context.file_store
        self._publisher = publisher
        self._writer_leases = writer_leases
        self._repair = repair
        self._eventual = eventual
        self._repaired: RepairedLog | None = None
        if repair is not None and eventual is None:
            self._repaired = RepairedLog(context, repair=repair, publisher=publisher, writer_leases=writer_leases)
        self._takes_leases = bool(context.schema.primary_keys) or context.log is not None
        self._appends_need_lease = self._takes_leases and eventual is None

    @property
    def takes_leases(self) -> bool:
        """Whether writers of the table have a lease: if it has a primary key or a log."""
        return self._takes_leases

    def open(
        self, *, commit_user: str, tracked: bool, purpose: str = "write", is_difference: bool = False
    ) -> WriteContext:
        """Start a commit: acquire the lease if the table needs one, and repair the log.

        A difference from the base's content (``is_difference``) always needs a lease: two of them would not commute.
        Raises ``UnavailableError`` if the lease or the log is unavailable, ``LogRepairError`` if the log cannot be
        repaired.
        """
        if self._eventual is not None and tracked and not is_difference:
            return WriteContext(commit_user=commit_user, tracked=True, base_snapshot_id=None)
        lease = None
        if self._takes_leases or is_difference:
            lease = self._writer_leases.take(commit_user, purpose)
        try:
            latest = self._file_store.snapshots.latest()
            self._file_store.check_layout(latest)
            base = None if latest is None else latest.id
            if lease is not None:
                with self._writer_leases.renewed(lease):
                    base = self._put_log_in_order(lease, base)
        except BaseException:
            self._writer_leases.release(lease)
            raise
        return WriteContext(
            commit_user=commit_user,
            tracked=tracked,
            base_snapshot_id=base,
            lease=lease,
            is_difference=is_difference,
        )

    def open_based_on(self, snapshot_id: int | None, *, commit_user: str, tracked: bool) -> WriteContext:
        """Start a commit, under a lease, of rows computed from a snapshot.

        ``snapshot_id`` 0 is the empty table, None the base of the returned context. Raises ``CommitConflictError`` if
        rows have changed since that snapshot; otherwise as ``open``.
        """
        write_context = self.open(
            commit_user=commit_user, tracked=tracked, purpose="change rows", is_difference=not self._appends_need_lease
        )
        try:
            if snapshot_id is not None:
                self._refuse_changes_between(snapshot_id, write_context.base_snapshot_id)
        except BaseException:
            self.abort(write_context, [])
            raise
        # Such rows are to change the table, so none may be hidden by a newer version of its key.
        return replace(write_context, refuses_late=True, reads_base=True)

    def _refuse_changes_between(self, computed_from: int, base_id: int | None) -> None:
        for snapshot_id, snapshot in self._file_store.snapshots.since(computed_from, base_id):
            if snapshot is None or snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
                message = (
                    f"table {self._table}: snapshot {snapshot_id} changed rows after snapshot {computed_from}, from "
                    "which the rows of this commit were computed; compute them from the newest snapshot and commit "
                    "again"
                )
                raise CommitConflictError(message)

    def _put_log_in_order(self, lease: Lease, newest: int | None) -> int | None:
        """Bring log and files to the same state; return the newest snapshot for which that holds."""
        if self._eventual is not None:
            return self._eventual.put_in_order(lease)
        return newest if self._repaired is None else self._repaired.put_in_order(lease, newest)

    def with_lease(self, write_context: WriteContext, sources: SourcesOf) -> WriteContext:
        """Return the context for rows that were read from ``sources``, with a lease if they go to an eventual log.

        Raises ``CommitConflictError`` if the table contains the sources up to other offsets. Only for an eventual log,
        whose records cannot be undone; other commits check this when they end.
        """
        return (
            write_context
            if self._eventual is None or not write_context.writes_log
            else self._eventual.with_lease(write_context, sources)
        )

    def committed(self, commit_user: str, commit_identifier: int, *, ascending: bool = False) -> Snapshot | None:
        """See ``SnapshotPublisher.committed``."""
        return self._publisher.committed(commit_user, commit_identifier, ascending=ascending)

    def commit(
        self,
        write_context: WriteContext,
        messages: Sequence[TableCommitMessage],
        commit_identifier: int,
        *,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
        sources: SourcesOf | None = None,
    ) -> Snapshot | None:
        """Commit the messages of all tasks as one snapshot; the lease is released in any case.

        Returns the snapshot, or that of an earlier commit under the same identity; None if there was nothing to write.
        ``properties`` are added to the snapshot's; ``sources`` computes the new offsets of external sources, for which
        a snapshot is created even without rows. Raises ``CommitConflictError`` or ``LeaseLostError`` with everything
        undone, ``CommitOutcomeUnknownError`` with everything left in place. Rows that are in the log already
        (``log.consistency=eventual``) stay there in any case: the next tiering writes their files.
        """
        if self._eventual is not None and write_context.writes_log:
            if sources is None and not any(message.row_count for message in messages):
                self.abort(write_context, messages)
                return None
            return self._eventual.commit(
                write_context, commit_identifier, watermark=watermark, properties=properties, sources=sources
            )
        transactions = tuple(each for message in messages for each in message.transactions)
        files = tuple(each for message in messages for each in message.files)
        with self._writer_leases.held(write_context.lease):
            earlier = self.committed(
                write_context.commit_user, commit_identifier, ascending=write_context.identifiers_ascend
            )
            if earlier is not None:
                with after_commit(f"table {self._table}: deleting the files of a commit that was repeated"):
                    self.abort(write_context, messages, release=False, committed=earlier)
                return earlier
            if not files and not transactions and sources is None:
                return None
            try:
                self._refuse_shared_buckets(transactions)
                self._refuse_shared_assigners(messages)
                snapshot, part = self._publisher.publish(
                    write_context,
                    commit_identifier=commit_identifier,
                    files=files,
                    transactions=transactions,
                    watermark=watermark,
                    properties=properties,
                    sources=sources,
                )
            except CommitOutcomeUnknownError:
                raise
            except Exception:
                # The original error matters more than a failed cleanup.
                with suppress(StorageError):
                    self.abort(write_context, messages, release=False)
                raise
            if self._repaired is not None:
                self._repaired.finish(write_context, part)
        return snapshot

    def mark(self, write_context: WriteContext) -> Snapshot:
        """Create an empty snapshot under the context's lease, so that no commit that began earlier can succeed."""
        snapshot, _ = self._publisher.publish(write_context, commit_identifier=BATCH_COMMIT_IDENTIFIER)
        return snapshot

    def abort(
        self,
        write_context: WriteContext,
        messages: Sequence[TableCommitMessage],
        *,
        release: bool = True,
        committed: Snapshot | None = None,
    ) -> None:
        """Undo the writes of tasks: delete their files, abort their transactions.

        ``committed`` is the snapshot in which the same messages may have been committed before: its files stay. If it
        has expired, a tag or a branch may need them, so that all files are left to the orphan file cleanup.
        """
        try:
            if committed is None or committed.has_files:
                files = [each for message in messages for each in message.files]
                self._file_store.abort(files, committed=committed)
            handles = tuple(each.handle for message in messages for each in message.transactions)
            if handles and self._repair is not None:
                self._repair.log.end_all(handles, commit=False)
        finally:
            if release:
                self._writer_leases.release(write_context.lease)

    def carried_forward(
        self, previous: Snapshot | None, sources: SourcesOf = as_they_were, *, tracked: bool = False
    ) -> Mapping[str, str]:
        """See ``SnapshotPublisher.carried_forward``."""
        return self._publisher.carried_forward(previous, sources, tracked=tracked)

    def source_offsets(self, snapshot: Snapshot | None, history: SnapshotHistory | None = None) -> SourceOffsets:
        """See ``SnapshotPublisher.source_offsets``."""
        return self._publisher.source_offsets(snapshot, history)

    def first_needed(self) -> int | None:
        """Return the oldest snapshot that log repair and source offsets need; None for a table without a commit.

        Other writers do not copy the source offsets and the rejected records into their snapshots.
        """
        newest = self._publisher.newest_of_ours()
        needed = None if self._repair is None else self._repair.first_needed()
        if newest is None or not SourceOffsets.of_snapshot(newest).to_properties():
            return needed
        return newest.id if needed is None else min(needed, newest.id)

    def lease_held(self, lease: Lease | None) -> AbstractContextManager[None]:
        """Renew a lease while the body runs, and release it at the end."""
        return self._writer_leases.held(lease)

    def _refuse_shared_assigners(self, messages: Sequence[TableCommitMessage]) -> None:
        assigners = [each for message in messages for each in message.assigners]
        if len(assigners) > len(set(assigners)):
            message = (
                f"table {self._table} has dynamic buckets, and {len([each for each in messages if each.assigners])} "
                "tasks brought rows of the same assigner to them, so that a new key could get into two buckets. "
                "Nothing became visible; write with write_dynamic_table or write_stream, which bring the rows of each "
                "assigner to one task, or with df.coalesce(1)"
            )
            raise InvalidInputError(message)

    def _refuse_shared_buckets(self, transactions: tuple[BucketTransaction, ...]) -> None:
        seen: set[int] = set()
        for each in transactions:
            if each.written.bucket in seen:
                raise two_tasks_for_one_bucket(self._table, each.written.bucket)
            seen.add(each.written.bucket)
