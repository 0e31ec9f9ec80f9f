"""``table.maintenance``: operations that keep a table small and fast. Writers continue meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.compact import CompactionTask
from storage_lib.file_store.expire import ExpireResult
from storage_lib.file_store.orphan_files import OrphanResult
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.progress.operation import report_to
from storage_lib.progress.progress import ProgressOption
from storage_lib.schema.types.rejected_schema import ID
from storage_lib.table.assembly.table_reads import TableReads
from storage_lib.table.assembly.table_writes import TableWrites
from storage_lib.table.inspect.rejected_records import RejectedRecords
from storage_lib.table.inspect.table_statistics import TableStatistics
from storage_lib.table.protocol.identity import write_identity_of
from storage_lib.table.protocol.materialized_rows import refuse_user_rows
from storage_lib.table.protocol.outcome import reports_outcome
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import OverwriteScope, TableCommitMessage


class TableMaintenance:
    """Maintenance of one table, in addition to ``DynamicTable.compact``."""

    def __init__(self, context: TableContext, reads: TableReads, writes: TableWrites) -> None:
        self._context = context
        self._reads = reads
        self._writes = writes
        self._rejected = RejectedRecords(context, source_offsets=writes.commit.source_offsets)

    @reports_outcome
    def expire_snapshots(self, *, retain_last: int = 10, older_than_millis: int | None = None) -> ExpireResult:
        """Delete all but the newest ``retain_last`` snapshots.

        With ``older_than_millis`` (epoch milliseconds) only snapshots older than that time are deleted. The table's
        rows stay: only files that no remaining snapshot, tag or consumer needs are deleted. Snapshots whose changes are
        not in the log yet also stay, until the next writer has published them.
        """
        return self._writes.care.expire_snapshots(retain_last=retain_last, older_than_millis=older_than_millis)

    @reports_outcome
    def remove_orphan_files(
        self,
        *,
        older_than: timedelta = timedelta(days=1),
        dry_run: bool = False,
        progress: ProgressOption = None,
    ) -> OrphanResult:
        """Delete, or only list, the files of this table and its branches that no snapshot, tag or branch needs.

        Younger files stay, because they may belong to a commit in progress: ``older_than`` must be longer than the
        longest write. ``progress`` counts the files that were listed ("find orphans"), then those that were deleted
        ("delete orphans").
        """
        with report_to(progress):
            return self._writes.care.remove_orphan_files(older_than=older_than, dry_run=dry_run)

    def publish_iceberg(self) -> int | None:
        """Publish what the Iceberg view does not show yet; return the newest snapshot that it shows.

        Each commit does so by itself; this is for a table whose last commit could not. None for a table without a view
        (option ``metadata.iceberg.storage``). Raises what made it fail, ``UnavailableError`` for example.
        """
        view = self._context.iceberg_view
        if view is None:
            return None
        view.refresh()
        return view.shown()

    @reports_outcome
    def delete_rejected(
        self,
        *,
        ids: Sequence[str] | None = None,
        source: str | None = None,
        column: str | None = None,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Delete rejected records: those with these ids, of a source, refused for a column; all without a choice.

        None if there are none. Their files are deleted with the last snapshot that names them. Raises ``NotFoundError``
        for an id that no record has, and ``CommitConflictError`` if another process has removed one meanwhile.
        """
        user, identifier = write_identity_of(
            self._context.name, self._context.environment, commit_user, commit_identifier
        )
        builder = self._writes.builder
        earlier = None if commit_identifier is None else builder.committed(user, identifier)
        if earlier is not None:
            return earlier
        chosen = self._rejected.chosen(ids=ids, source=source, column=column, parts=[ID])
        if not chosen.num_rows:
            return None
        change = builder.rejected_change(resolved=chosen[ID].to_pylist())
        write_context = builder.begin(commit_user=user, tracked=False)
        return builder.commit(write_context, [], identifier, rejected=change)

    @reports_outcome
    def drop_partitions(
        self,
        partitions: Sequence[Mapping[str, object]],
        *,
        change_tracking: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Drop every partition that matches one of ``partitions``. If tracked, streams see the deletions.

        Raises ``NotFoundError``, without dropping anything, for values that match no partition, and
        ``InvalidInputError`` for a materialized table.
        """
        refuse_user_rows(self._context)
        user, identifier = self._identity(commit_user, commit_identifier)
        builder = self._writes.builder
        earlier = builder.committed(user, identifier)
        if earlier is not None:
            return earlier
        self._writes.care.refuse_missing(partitions)
        if change_tracking:
            order = builder.begin(commit_user=user, tracked=True, overwrite=OverwriteScope.of(*partitions))
            return self._writes.direct.write(order, (), identifier)
        return self._writes.care.drop_partitions(partitions, commit_user=user, commit_identifier=identifier)

    @reports_outcome
    def tier_log(
        self,
        *,
        compact: bool = True,
        skip_expired: bool = False,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Write the records that only the log contains to the files; None if there are no such records.

        For tables with ``log.consistency=eventual``. The snapshot contains the records and their offsets, so each
        record is written to the files exactly once, even if several processes call this, repeat it, and crash. Streams
        call it every ``log.tier-interval``, batch writes when they end. Due compactions run afterwards, unless
        ``compact`` is False or the table is ``write-only``. ``skip_expired`` continues after records that the log's
        retention has deleted.

        Raises ``InvalidInputError`` for other tables, ``LogOffsetsExpiredError``, without a commit, for deleted
        records, and ``UnavailableError`` and ``LeaseLostError`` as ``DynamicTable.append`` does.
        """
        if self._writes.eventual is None:
            message = (
                f"table {self._context.name}: files and log are written together, so there is nothing to tier; "
                "tier_log is for tables with log.consistency=eventual"
            )
            raise InvalidInputError(message)
        user, identifier = self._identity(commit_user, commit_identifier)
        snapshot = self._writes.eventual.tier_log(
            commit_user=user, commit_identifier=identifier, skip_expired=skip_expired
        )
        if snapshot is not None and compact:
            self._writes.post_commit.compact_changed(snapshot)
        return snapshot

    @reports_outcome
    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Store statistics of the newest snapshot (rows, bounds, distinct values), which engines use to plan queries.

        Reads every row once. None for a table without a commit. The system table ``statistics`` shows them.
        """
        user, identifier = self._identity(commit_user, commit_identifier)
        statistics = TableStatistics(
            self._context, commit=self._writes.commit, only_compacted=self._reads.batch_reads.only_compacted
        )
        return statistics.analyze(columns, commit_user=user, commit_identifier=identifier)

    # --- compaction by an engine --------------------------------------------------------------------------------

    def plan_compaction(
        self,
        partition: Mapping[str, object] | None = None,
        *,
        full: bool = True,
        buckets: Iterable[tuple[Mapping[str, object], int]] | None = None,
    ) -> list[CompactionTask]:
        """Plan what ``DynamicTable.compact`` would do: one picklable task per bucket, which an engine can run in
        parallel.
        """
        return self._writes.care.plan_compaction(partition, full=full, buckets=buckets)

    @reports_outcome
    def compact_planned(
        self,
        tasks: Sequence[CompactionTask],
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
        progress: ProgressOption = None,
    ) -> Snapshot | None:
        """Run and commit the tasks of ``plan_compaction`` in this process, otherwise as ``DynamicTable.compact``."""
        with report_to(progress):
            return self._writes.care.compact_planned(
                tasks, commit_user=commit_user, commit_identifier=commit_identifier
            )

    def run_compaction(self, task: CompactionTask) -> CommitMessage | None:
        """Run one task. Its files are durable, but not yet part of the table."""
        return self._writes.care.run_compaction(task)

    @reports_outcome
    def commit_compaction(
        self,
        messages: Sequence[CommitMessage],
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Commit the results of ``run_compaction``; results for buckets that another commit has changed are deleted.

        Raises ``CommitConflictError`` if that applies to all buckets.
        """
        return self._writes.care.commit_compaction(
            messages, commit_user=commit_user, commit_identifier=commit_identifier
        )

    def abort_compaction(self, messages: Sequence[CommitMessage]) -> None:
        """Delete the files of ``run_compaction`` results that will not be committed."""
        self._writes.care.abort_compaction(messages)

    def compact_written(
        self, written: Snapshot, messages: Sequence[TableCommitMessage], *, only_crowded: bool = False
    ) -> None:
        """Run the due compactions of a commit's buckets in a separate snapshot, as ``append`` does after its commit.

        Raises no ``StorageError``: the result of a conflict is discarded, and any other failure is a
        ``RuntimeWarning``. Does nothing for a ``write-only`` table. ``only_crowded`` compacts only buckets at their
        stop trigger.
        """
        self._writes.post_commit.compact_written(written, messages, only_crowded=only_crowded)

    def _identity(self, commit_user: str | None, commit_identifier: int | None) -> tuple[str, int]:
        return write_identity_of(self._context.name, self._context.environment, commit_user, commit_identifier)
