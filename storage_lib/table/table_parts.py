"""What a dynamic table is made of, put together; ``DynamicTable`` delegates to these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from storage_lib.file_store.external_claims import ExternalClaims
from storage_lib.file_store.schema_in_force import schema_in_force
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import LogConsistency
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.changelog.change_scan import ChangeScan
from storage_lib.table.changelog.changelog_normalizer import ChangelogNormalizer
from storage_lib.table.changelog.complete_appends import CompleteAppends
from storage_lib.table.changelog.content_difference import ContentDifference
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.changelog.told_changes import ToldChanges
from storage_lib.table.commit.eventual_commit import EventualCommit
from storage_lib.table.commit.log_repair import LogRepair
from storage_lib.table.commit.reserved_partitions import ReservedPartitions
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.commit.table_overwrite import TableOverwrite
from storage_lib.table.commit.table_restore import TableRestore, why_buckets_differ, why_no_difference_can_be_appended
from storage_lib.table.direct_writes import DirectWrites
from storage_lib.table.evolve.table_alter import TableAlter
from storage_lib.table.evolve.table_branches import TableBranches
from storage_lib.table.evolve.table_consumers import TableConsumers
from storage_lib.table.evolve.table_rewrite import TableRewrite
from storage_lib.table.evolve.table_rollback import TableRollback
from storage_lib.table.evolve.table_tags import TableTags
from storage_lib.table.input.input_rows import InputRows
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.inspect.commit_listing import CommitListing
from storage_lib.table.inspect.system_tables import SystemTables
from storage_lib.table.inspect.table_description import TableDescription
from storage_lib.table.inspect.table_health import TableHealthCheck
from storage_lib.table.inspect.table_statistics import TableStatistics
from storage_lib.table.maintenance.post_commit_compaction import PostCommitCompaction
from storage_lib.table.maintenance.table_care import TableCare
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.read.point_lookup import PointLookup
from storage_lib.table.read.time_travel import TimeTravel
from storage_lib.table.stream.table_streams import TableStreams
from storage_lib.table.table_inspection import TableInspection
from storage_lib.table.table_maintenance import TableMaintenance
from storage_lib.table.write.task_writes import TaskWrites
from storage_lib.table.write_builder import WriteBuilder

TableT = TypeVar("TableT")


class TableParts(Generic[TableT]):
    """The parts of one branch of one table.

    ``newest`` gives those under the table's newest schema, ``under`` those under any; ``open_branch`` opens a branch
    under a schema of its own.
    """

    def __init__(
        self,
        context: TableContext,
        *,
        newest: Callable[[], TableParts[TableT]],
        under: Callable[[TableSchema], TableParts[TableT]],
        open_branch: Callable[[str, TableSchema], TableT],
    ) -> None:
        name, schema, options = context.name, context.schema, context.options
        environment, paths, log = context.environment, context.paths, context.log
        self.context = context
        self.input = InputRows(name, schema, options.row_kind_field, ignore_delete=options.ignore_delete)
        self.partitions = PartitionSpecs(name, schema)
        self.changes = SnapshotChanges(context.file_store)
        logs_old_rows = context.logs_old_rows
        # Old rows have to be found as soon as they are committed, whatever batch reads show.
        self.old_rows = PointLookup(table=name, schema=schema, file_store=context.file_store, only_compacted=False)
        self.batch_reads = BatchReads(table=name, schema=schema, options=options, file_store=context.file_store)
        self.task_writes = TaskWrites(
            table=name,
            environment=environment,
            schema=schema,
            options=options,
            file_store=context.file_store,
            log=log,
            lease=context.lease,
            input_rows=self.input,
            old_rows=self.old_rows,
        )
        self.complete_appends = CompleteAppends(
            changes=self.changes,
            snapshots=context.file_store.snapshots,
            lookup=self.old_rows,
            primary_keys=schema.primary_keys,
        )
        repair = None
        if log is not None:
            repair = LogRepair(
                table=name,
                file_store=context.file_store,
                log=log,
                changes=self.changes,
                complete=self.complete_appends if logs_old_rows and schema.primary_keys else None,
            )
        self.eventual: EventualCommit | None = None
        if repair is not None and options.log_consistency is LogConsistency.EVENTUAL:
            self.eventual = EventualCommit(
                table=name,
                environment=environment,
                file_store=context.file_store,
                schema=schema,
                repair=repair,
                lease=context.lease,
                transaction_timeout_ms=options.log_transaction_timeout_ms,
                of_newest_schema=lambda: newest().commit,
            )
        self.commit: TableCommit = self.eventual or TableCommit(
            table=name,
            environment=environment,
            file_store=context.file_store,
            repair=repair,
            lease=context.lease,
            bucket_count=len(schema.bucket_numbers),
            takes_turns=bool(schema.primary_keys) or log is not None,
            adds_up=schema.counts_values,
            reserves=ReservedPartitions.of(schema),
        )
        difference = ContentDifference(
            file_store=context.file_store,
            schema=schema,
            with_update_before=logs_old_rows,
            merges=bool(schema.primary_keys) and not options.newest_wins,
        )
        tells = context.file_store.tells_changes
        told_changes = ToldChanges(file_store=context.file_store, difference=difference) if tells else None
        # Whether streams hear of changes, from the log or from changelog files.
        has_streams = log is not None or told_changes is not None
        self.overwrite = TableOverwrite(
            table=name,
            schema=schema,
            file_store=context.file_store,
            commit=self.commit,
            partitions=self.partitions,
            row_kind_column=options.row_kind_field,
            difference=difference,
            appends_difference=why_no_difference_can_be_appended(schema, options) is None,
            told_changes=told_changes,
            new_task_write=self.task_writes.open,
        )
        self.tags = TableTags(table=name, environment=environment, file_store=context.file_store)
        self.consumers = TableConsumers(table=name, environment=environment, file_store=context.file_store)
        self.time_travel = TimeTravel(table=name, file_store=context.file_store, options=options)
        self.care = TableCare(
            table=name,
            environment=environment,
            file_store=context.file_store,
            commit=self.commit,
            partitions=self.partitions,
        )
        self.post_commit = PostCommitCompaction(context, self.care)
        restore = TableRestore(
            table=name,
            file_store=context.file_store,
            commit=self.commit,
            difference=difference,
            row_kind_column=options.row_kind_field,
            refuse_tracked=why_no_difference_can_be_appended(schema, options) or why_buckets_differ(schema),
            told_changes=told_changes,
            compact=self.post_commit.compact_changed,
            new_task_write=self.task_writes.open,
        )
        self.branches: TableBranches[TableT] = TableBranches(
            table=name,
            environment=environment,
            paths=paths,
            file_store=context.file_store,
            tags=self.tags,
            restore=restore,
            schema_id=schema.id,
            has_log=log is not None,
            tracks=has_streams,
            others_expire=options.others_expire,
            of_newest_schema=lambda: newest().branches,
            open_branch=open_branch,
        )
        self.rollback = TableRollback(
            table=name,
            environment=environment,
            time_travel=self.time_travel,
            tags=self.tags,
            restore=restore,
            tracks=has_streams,
        )

        def change_scan(of: ContentDifference) -> ChangeScan:
            return ChangeScan(
                table=name,
                schema=schema,
                options=options,
                file_store=context.file_store,
                changes=self.changes,
                difference=of,
            )

        self.change_scan = change_scan(difference)
        # None where streams are complete already: without a key rows are counted, a log in mode all has the old rows.
        normalizer: ChangelogNormalizer | None = None
        complete_change_scan = self.change_scan
        if schema.primary_keys and (log is None or not logs_old_rows):
            normalizer = ChangelogNormalizer(
                table=name,
                primary_keys=schema.primary_keys,
                file_store=context.file_store,
                appends=self.complete_appends,
                lookup=self.old_rows,
                ends_transactions=options.log_consistency is LogConsistency.TRANSACTIONAL,
            )
            complete_change_scan = change_scan(difference.with_old_rows())
        self.streams = TableStreams(
            table=name,
            uuid=context.uuid,
            environment=environment,
            schema=schema,
            options=options,
            file_store=context.file_store,
            log=log,
            changes=self.changes,
            change_scan=self.change_scan,
            complete_change_scan=complete_change_scan,
            normalizer=normalizer,
            store_options=context.store_options,
        )
        self.system_tables = SystemTables(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            file_store=context.file_store,
            changes=self.change_scan,
        )
        self.rewrite = TableRewrite(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            options=options,
            file_store=context.file_store,
            commit=self.commit,
            lease=context.lease,
            has_log=log is not None,
            under=under,
        )
        self.alter = TableAlter(
            table=name,
            environment=environment,
            history=SchemaHistory(environment.file_io, paths),
            claims=ExternalClaims(environment.file_io, context.location),
            is_branch=context.is_branch,
            log=log,
            check_table=context.file_store.check_still_there,
            in_force=lambda: schema_in_force(environment.file_io, paths),
            give_up_rewriting=self.rewrite.give_up,
        )
        self.lookup = PointLookup(
            table=name,
            schema=schema,
            file_store=context.file_store,
            only_compacted=self.batch_reads.only_compacted,
        )
        self.statistics = TableStatistics(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            file_store=context.file_store,
            commit=self.commit,
            only_compacted=self.batch_reads.only_compacted,
        )
        self.commit_listing = CommitListing(file_store=context.file_store, partitions=PartitionCodec(schema))
        self.health_check = TableHealthCheck(context.file_store)
        self.description = TableDescription(
            name=name,
            location=context.location,
            schema=schema,
            options=options,
            file_store=context.file_store,
            log=log,
            lease=context.lease,
            partitions=self.partitions,
        )
        self.write_builder = self._write_builder()
        self.direct_writes = DirectWrites(self.write_builder, self.post_commit)
        self.maintenance, self.inspection = self._namespaces(context)

    def _write_builder(self) -> WriteBuilder:
        return WriteBuilder(
            context=self.context,
            input=self.input,
            partitions=self.partitions,
            commits=self.commit,
            overwrites=self.overwrite,
            tasks=self.task_writes,
        )

    def _namespaces(self, context: TableContext) -> tuple[TableMaintenance, TableInspection]:
        maintenance = TableMaintenance(
            context=context,
            care=self.care,
            statistics=self.statistics,
            post_commit=self.post_commit,
            eventual=self.eventual,
            writes=self.direct_writes,
        )
        inspection = TableInspection(
            context=context,
            description=self.description,
            system_tables=self.system_tables,
            commit_listing=self.commit_listing,
            health_check=self.health_check,
            table_commits=self.commit,
        )
        return maintenance, inspection
