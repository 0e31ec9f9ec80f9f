"""Constructs and connects the parts that write to one branch of a table."""

from __future__ import annotations

from collections.abc import Callable

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
        schema, options = context.schema, context.options
        self.context = context
        self.input = InputRows(
            context.name,
            schema,
            options.row_kind_field,
            ignore_delete=options.ignore_delete,
            merge_engine=options.merge_engine,
        )
        self.partitions = PartitionSpecs(context.name, schema)
        self.tasks = TaskWrites(context, input_rows=self.input, old_rows=reads.old_rows)
        repair = _repair(context, reads)
        publisher = SnapshotPublisher(
            context, repair=repair, adds_up=schema.counts_values, reserves=ReservedPartitions.of(schema)
        )
        writer_leases = WriterLeases(context, fences_first=self.tasks.is_log_first)
        self.eventual: EventualCommit | None = None
        if repair is not None and self.tasks.is_log_first:
            self.eventual = EventualCommit(
                context,
                publisher=publisher,
                writer_leases=writer_leases,
                repair=repair,
                of_newest_schema=lambda: newest().eventual,
            )
        self.commit = TableCommit(
            context, publisher=publisher, writer_leases=writer_leases, repair=repair, eventual=self.eventual
        )
        overwrite_changelog: OverwriteChangelog | None = None
        if context.file_store.writes_changelog:
            overwrite_changelog = OverwriteChangelog(file_store=context.file_store, difference=reads.difference)
        self.has_streams = context.log is not None or overwrite_changelog is not None
        """Whether streams receive changes, from the log or from changelog files."""
        self.overwrite = TableOverwrite(
            context,
            commit=self.commit,
            partitions=self.partitions,
            difference=reads.difference,
            overwrite_changelog=overwrite_changelog,
            new_task_write=self.tasks.open,
        )
        self.care = FileMaintenance(context, commit=self.commit, partitions=self.partitions)
        self.post_commit = PostCommitCompaction(context, self.care)
        self.restore = TableRestore(
            context,
            commit=self.commit,
            difference=reads.difference,
            overwrite_changelog=overwrite_changelog,
            compact=self.post_commit.compact_changed,
            new_task_write=self.tasks.open,
        )
        self.builder = WriteBuilder(
            context=context,
            input=self.input,
            partitions=self.partitions,
            commits=self.commit,
            overwrites=self.overwrite,
            tasks=self.tasks,
        )
        self.direct = DirectWrites(self.builder, self.post_commit)


def _repair(context: TableContext, reads: TableReads) -> LogRepair | None:
    if context.log is None:
        return None
    finds_old_rows = context.logs_old_rows and context.schema.primary_keys
    return LogRepair(
        context,
        log=context.log,
        changes=reads.changes,
        complete=reads.complete_appends if finds_old_rows else None,
    )
