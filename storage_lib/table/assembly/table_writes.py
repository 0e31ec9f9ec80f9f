"""Constructs and connects the parts that write to one branch of a table, each at its first use."""

from __future__ import annotations

from collections.abc import Callable

from storage_lib.built_once import built_once
from storage_lib.table.assembly.table_reads import TableReads
from storage_lib.table.builders.write_builder import WriteBuilder
from storage_lib.table.changelog.overwrite_changelog import OverwriteChangelog
from storage_lib.table.commit.eventual_commit import EventualCommit
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.reserved_partitions import ReservedPartitions
from storage_lib.table.commit.snapshot_publisher import SnapshotPublisher
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.commit.table_overwrite import TableOverwrite
from storage_lib.table.commit.table_restore import TableRestore
from storage_lib.table.commit.writer_leases import WriterLeases
from storage_lib.table.input.input_rows import InputRows
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.maintenance.file_maintenance import FileMaintenance
from storage_lib.table.maintenance.post_commit_compaction import PostCommitCompaction
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.verbs.direct_writes import DirectWrites
from storage_lib.table.write.task_writes import TaskWrites


class TableWrites:
    """Commits, task writers and compaction of one table. ``newest`` returns the same under its newest schema."""

    def __init__(self, context: TableContext, reads: TableReads, *, newest: Callable[[], TableWrites]) -> None:
        self.context = context
        self._reads = reads
        self._newest = newest

    @property
    def has_streams(self) -> bool:
        """Whether streams receive changes, from the log or from changelog files."""
        return self.context.log is not None or self.context.file_store.writes_changelog

    @built_once
    def input(self) -> InputRows:
        """Checks rows and converts them to the table's types."""
        options = self.context.options
        return InputRows(
            self.context.name,
            self.context.schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )

    @built_once
    def partitions(self) -> PartitionSpecs:
        """Checks partitions that users name."""
        return PartitionSpecs(self.context.name, self.context.schema)

    @built_once
    def tasks(self) -> TaskWrites:
        """Opens the writers of tasks."""
        return TaskWrites(
            self.context, input_rows=self.input, old_rows=self._reads.old_rows, newest=lambda: self._newest().tasks
        )

    @built_once
    def eventual(self) -> EventualCommit | None:
        """Commits rows that are written to the log first (``log.consistency=eventual``); None for other tables."""
        if self._repair is None or not self.context.is_log_first:
            return None
        return EventualCommit(
            self.context,
            publisher=self._publisher,
            writer_leases=self._writer_leases,
            repair=self._repair,
            of_newest_schema=lambda: self._newest().eventual,
        )

    @built_once
    def commit(self) -> TableCommit:
        """Opens and commits appends."""
        return TableCommit(
            self.context,
            publisher=self._publisher,
            writer_leases=self._writer_leases,
            repair=self._repair,
            eventual=self.eventual,
        )

    @built_once
    def overwrite(self) -> TableOverwrite:
        """Commits overwrites and drops of partitions."""
        return TableOverwrite(
            self.context,
            commit=self.commit,
            partitions=self.partitions,
            difference=self._reads.difference,
            overwrite_changelog=self._overwrite_changelog,
            new_task_write=self.tasks.open,
            of_newest_schema=lambda: self._newest().overwrite,
        )

    @built_once
    def care(self) -> FileMaintenance:
        """Compacts, expires and cleans up files."""
        return FileMaintenance(self.context, commit=self.commit, partitions=self.partitions)

    @built_once
    def post_commit(self) -> PostCommitCompaction:
        """Runs the compactions that are due after a commit."""
        return PostCommitCompaction(self.context, self.care)

    @built_once
    def restore(self) -> TableRestore:
        """Restores the content of an older snapshot or of a branch."""
        return TableRestore(
            self.context,
            commit=self.commit,
            difference=self._reads.difference,
            overwrite_changelog=self._overwrite_changelog,
            compact=self.post_commit.compact_changed,
            new_task_write=self.tasks.open,
            of_newest_schema=lambda: self._newest().restore,
        )

    @built_once
    def builder(self) -> WriteBuilder:
        """The write of an engine."""
        return WriteBuilder(context=self.context, parts=self)

    @built_once
    def direct(self) -> DirectWrites:
        """Writes rows in this process."""
        return DirectWrites(self.builder, self.post_commit)

    @built_once
    def _publisher(self) -> SnapshotPublisher:
        schema = self.context.schema
        return SnapshotPublisher(
            self.context,
            repair=self._repair,
            adds_up=schema.counts_values,
            reserves=ReservedPartitions.of(schema),
        )

    @built_once
    def _writer_leases(self) -> WriterLeases:
        return WriterLeases(self.context, fences_first=self.context.is_log_first)

    @built_once
    def _repair(self) -> LogRepair | None:
        context = self.context
        if context.log is None:
            return None
        finds_old_rows = context.logs_old_rows and context.schema.primary_keys
        return LogRepair(
            context,
            log=context.log,
            changes=self._reads.changes,
            complete=self._reads.complete_appends if finds_old_rows else None,
        )

    @built_once
    def _overwrite_changelog(self) -> OverwriteChangelog | None:
        file_store = self.context.file_store
        if not file_store.writes_changelog:
            return None
        return OverwriteChangelog(file_store=file_store, difference=self._reads.difference)
