"""``table.new_write()``: a write that an engine begins and commits on the driver and runs in tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.rejected.rejected_change import RejectedChange
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.schema.types.rejected_schema import checked_rejected
from storage_lib.table.commit.rejected_commit import commit_with_rejected
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.commit.table_overwrite import TableOverwrite
from storage_lib.table.input.input_rows import InputRows
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.protocol.identity import checked_identifier, checked_user
from storage_lib.table.protocol.lease import TableLeases
from storage_lib.table.protocol.materialized_rows import refuse_user_rows
from storage_lib.table.protocol.outcome import reports_outcome
from storage_lib.table.protocol.source_offsets import SourceOffsets, SourceRange
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import OverwriteScope, TableCommitMessage, WriteContext
from storage_lib.table.write.table_write import TableWrite
from storage_lib.table.write.task_writes import TaskWrites


class WriteParts(Protocol):
    """Parts of a table that write."""

    @property
    def input(self) -> InputRows:
        """Checks rows and converts them to the table's types."""

    @property
    def partitions(self) -> PartitionSpecs:
        """Checks partitions that users name."""

    @property
    def tasks(self) -> TaskWrites:
        """Opens the writers of tasks."""

    @property
    def commit(self) -> TableCommit:
        """Opens and commits appends."""

    @property
    def overwrite(self) -> TableOverwrite:
        """Commits overwrites and drops of partitions."""


@dataclass(frozen=True)
class WriteBuilder:
    """A write of an engine, begun and committed on the driver and written by tasks.

        write = table.new_write()
        context = write.begin(commit_user="job-7")                   # driver
        task = write.open_task(context, task_index=3)                # task
        task.write(rows)
        message = task.prepare_commit()
        write.commit(context, [message], commit_identifier=1)        # driver; or write.abort(context, messages)

    The context and the messages are picklable, so that an engine can pass them between processes.
    """

    context: TableContext
    parts: WriteParts

    @property
    def commits(self) -> TableCommit:
        """Opens and commits the parts of a write that are appends."""
        return self.parts.commit

    @property
    def is_log_first(self) -> bool:
        """See ``TableContext.is_log_first``."""
        return self.context.is_log_first

    @property
    def takes_leases(self) -> bool:
        """Whether writers of the table have a lease: if it has a primary key or a log. Others never wait."""
        return self.parts.commit.takes_leases

    @property
    def leases(self) -> TableLeases:
        """The lease of the table's writers, which a driver renews while its tasks write."""
        return self.context.leases

    def check_input(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` if rows of this Arrow schema do not fit the table."""
        self.parts.input.check_columns(schema)

    @reports_outcome
    def begin(
        self,
        *,
        commit_user: str,
        tracked: bool | None = None,
        overwrite: OverwriteScope | None = None,
        based_on: int | None = None,
        needs_lease: bool = False,
        refreshes: bool = False,
    ) -> WriteContext:
        """Begin a commit on the driver, before any task: acquire the lease if it is needed, and repair the log.

        End it with ``commit`` or ``abort``. ``based_on``: the rows were computed from this snapshot (0: the empty
        table), as for an UPDATE, so they would revert later commits. ``needs_lease``: acquire the lease for any kind of
        table, so that rows can be computed from the base snapshot while no other writer appends. ``refreshes``: this is
        the refresh of a materialized table. Raises ``CommitConflictError`` if the table has changed since ``based_on``,
        ``UnavailableError`` if the lease cannot be acquired in time, ``InvalidInputError`` for other writes of a
        materialized table.
        """
        table = self.context
        if not refreshes:
            refuse_user_rows(table)
        checked_user(table.name, commit_user)
        is_tracked = table.options.change_tracking if tracked is None else tracked
        if overwrite is not None and table.schema.is_append_only:
            if tracked:
                message = (
                    f"table {table.name} is append-only, so its streams cannot report which rows an overwrite or a "
                    "drop removes; run it with change_tracking=False"
                )
                raise InvalidInputError(message)
            is_tracked = False
        if overwrite is None and (needs_lease or based_on is not None):
            return self.parts.commit.open_based_on(based_on, commit_user=commit_user, tracked=is_tracked)
        if overwrite is None:
            return self.parts.commit.open(commit_user=commit_user, tracked=is_tracked)
        if overwrite.partitions is None and not table.schema.partition_keys:
            # A table without partitions is one partition, so an overwrite without rows empties it.
            overwrite = OverwriteScope.of({})
        self.parts.partitions.predicate_of(overwrite)
        return WriteContext(
            commit_user=commit_user,
            tracked=is_tracked,
            base_snapshot_id=table.file_store.snapshots.latest_id(),
            overwrite=overwrite,
        )

    def open_task(self, write_context: WriteContext, *, task_index: int | None = None) -> TableWrite:
        """Open the writer of one task. Tasks need different indexes, because several may write rows of one bucket."""
        return self.parts.tasks.open(write_context, task_index=task_index)

    def answer_changes(self, write_context: WriteContext, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Convert rows that were added to or removed from a query's result, in any order, to changes for ``write``.

        For a table that stores the result by its primary key; include all rows of a key. They are compared with the
        rows of the snapshot on which ``write_context`` is based. Raises ``InvalidInputError`` (a ``SharedKeyError``) if
        two rows of the result would share a key.
        """
        return self.parts.tasks.answer_changes(write_context, batches)

    @reports_outcome
    def commit(
        self,
        write_context: WriteContext,
        messages: Sequence[TableCommitMessage],
        commit_identifier: int,
        *,
        watermark: int | None = None,
        defers_tiering: bool = False,
        sources: Sequence[SourceRange] = (),
        rejected: RejectedChange | None = None,
    ) -> Snapshot | None:
        """Commit the results of the tasks as one snapshot, also visible in the log; releases the lease in any case.

        Exactly once per ``(write_context.commit_user, commit_identifier)``, an integer of 0 or more. Returns None if
        there was nothing to commit. ``sources``: the commit contains all records of these ranges, and the snapshot
        records them. ``rejected``: records of the sources that the snapshot stores as rejected, or that leave the
        rejected ones (``rejected_change``). ``defers_tiering``: leave rows that are in the log already
        (``is_log_first``) to the next ``tier_log``, and return None. Raises ``CommitConflictError`` if a range does not
        begin where ``source_offsets`` ends, or another commit has changed the rows on which this one is based.
        """
        try:
            commit_identifier = checked_identifier(self.context.name, commit_identifier)
        except InvalidInputError:
            self.abort(write_context, messages)
            raise
        changes_rejected = rejected is not None and not rejected.is_empty
        if changes_rejected and write_context.overwrite is not None:
            self.abort(write_context, messages)
            message = f"table {self.context.name}: an overwrite can't store rejected records; append the rows"
            raise InvalidInputError(message)
        if defers_tiering and not changes_rejected and self.is_log_first and write_context.writes_log:
            self.parts.commit.abort(write_context, messages)
            return None
        if write_context.overwrite is not None:
            return self.parts.overwrite.commit(write_context, messages, commit_identifier)
        commit = partial(self.parts.commit.commit, write_context, messages, commit_identifier, watermark=watermark)
        if rejected is None or not changes_rejected:
            return commit(sources=partial(SourceOffsets.advanced, by=sources) if sources else None)
        return commit_with_rejected(self.context.name, commit, sources, rejected)

    def rejected_change(self, added: pa.Table | None = None, resolved: Sequence[str] = ()) -> RejectedChange:
        """Return a change of the rejected records for ``commit``: records that it adds, ids of those that leave.

        Raises ``InvalidInputError`` for records that do not have the columns of ``REJECTED_SCHEMA``.
        """
        checked = None if added is None else checked_rejected(self.context.name, added)
        return self.context.file_store.rejected_change(checked, resolved)

    def committed(self, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """Return the snapshot committed under this identity, or None. Lets a retry skip finished work.

        Ends the log transactions that a crash left open.
        """
        return self.parts.commit.committed(commit_user, checked_identifier(self.context.name, commit_identifier))

    def abort(self, write_context: WriteContext, messages: Sequence[TableCommitMessage]) -> None:
        """Undo the writes of the tasks and release the lease."""
        self.parts.commit.abort(write_context, messages)
