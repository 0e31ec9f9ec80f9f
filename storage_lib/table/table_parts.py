"""What a dynamic table is made of, put together; ``DynamicTable`` hands its verbs on to these."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from storage_lib.file_store.external_claims import ExternalClaims
from storage_lib.file_store.schema_in_force import schema_in_force
from storage_lib.file_store.store import FileStore
from storage_lib.io.environment import Environment
from storage_lib.io.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.table_options import ChangelogMode, LogConsistency, TableOptions
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
from storage_lib.table.evolve.table_alter import TableAlter
from storage_lib.table.evolve.table_branches import TableBranches
from storage_lib.table.evolve.table_consumers import TableConsumers
from storage_lib.table.evolve.table_rewrite import RewrittenTable, TableRewrite
from storage_lib.table.evolve.table_rollback import TableRollback
from storage_lib.table.evolve.table_tags import TableTags
from storage_lib.table.input.input_rows import InputRows
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.inspect.commit_listing import CommitListing
from storage_lib.table.inspect.system_tables import SystemTables
from storage_lib.table.inspect.table_description import TableDescription
from storage_lib.table.inspect.table_health import TableHealthCheck
from storage_lib.table.inspect.table_statistics import TableStatistics
from storage_lib.table.maintenance.inline_compaction import InlineCompaction
from storage_lib.table.maintenance.table_care import TableCare
from storage_lib.table.protocol.turn import TurnLease
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.read.point_lookup import PointLookup
from storage_lib.table.read.time_travel import TimeTravel
from storage_lib.table.stream.table_streams import TableStreams
from storage_lib.table.write.task_writes import TaskWrites


class TableParts:
    """The parts of one branch of one table. ``of_newest_schema`` gives the branches under the table's newest schema,
    ``newest_commit`` the commits under it, ``under`` the table under any; ``store_options`` are the catalog's.
    """

    def __init__(
        self,
        *,
        name: str,
        uuid: str,
        location: str,
        branch: str,
        environment: Environment,
        schema: TableSchema,
        options: TableOptions,
        log: LogStore | None,
        store_options: Mapping[str, str],
        of_newest_schema: Callable[[], TableBranches],
        newest_commit: Callable[[], TableCommit],
        under: Callable[[TableSchema], RewrittenTable],
    ) -> None:
        paths = TablePaths(location, branch)
        self.file_store = FileStore(table=name, environment=environment, paths=paths, schema=schema, options=options)
        self.lease = TurnLease(
            environment,
            paths,
            timeout_ms=options.lease_timeout_ms,
            wait_timeout_ms=options.lease_wait_timeout_ms,
            table=name,
        )
        self.input = InputRows(name, schema, options.row_kind_field, ignore_delete=options.ignore_delete)
        self.partitions = PartitionSpecs(name, schema)
        self.changes = SnapshotChanges(self.file_store)
        logs_old_rows = options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys)) is ChangelogMode.ALL
        # Old rows have to be found as soon as they are committed, whatever batch reads show.
        self.old_rows = PointLookup(table=name, schema=schema, file_store=self.file_store, only_compacted=False)
        self.batch_reads = BatchReads(table=name, schema=schema, options=options, file_store=self.file_store)
        only_compacted = self.batch_reads.only_compacted
        self.task_writes = TaskWrites(
            table=name,
            environment=environment,
            schema=schema,
            options=options,
            file_store=self.file_store,
            log=log,
            lease=self.lease,
            input_rows=self.input,
            old_rows=self.old_rows,
        )
        self.complete_appends = CompleteAppends(
            changes=self.changes,
            snapshots=self.file_store.snapshots,
            lookup=self.old_rows,
            primary_keys=schema.primary_keys,
        )
        repair = None
        if log is not None:
            repair = LogRepair(
                table=name,
                file_store=self.file_store,
                log=log,
                changes=self.changes,
                complete=self.complete_appends if logs_old_rows and schema.primary_keys else None,
            )
        self.eventual: EventualCommit | None = None
        if repair is not None and options.log_consistency is LogConsistency.EVENTUAL:
            self.eventual = EventualCommit(
                table=name,
                environment=environment,
                file_store=self.file_store,
                schema=schema,
                repair=repair,
                lease=self.lease,
                transaction_timeout_ms=options.log_transaction_timeout_ms,
                of_newest_schema=newest_commit,
            )
        self.commit: TableCommit = self.eventual or TableCommit(
            table=name,
            environment=environment,
            file_store=self.file_store,
            repair=repair,
            lease=self.lease,
            bucket_count=len(schema.bucket_numbers),
            takes_turns=bool(schema.primary_keys) or log is not None,
            adds_up=schema.counts_values,
            reserves=ReservedPartitions.of(schema),
        )
        difference = ContentDifference(
            file_store=self.file_store,
            schema=schema,
            with_update_before=logs_old_rows,
            merges=bool(schema.primary_keys) and not options.newest_wins,
        )
        tells = self.file_store.tells_changes
        told_changes = ToldChanges(file_store=self.file_store, difference=difference) if tells else None
        # Whether streams hear of changes, from the log or from changelog files.
        has_streams = log is not None or told_changes is not None
        self.overwrite = TableOverwrite(
            table=name,
            schema=schema,
            file_store=self.file_store,
            commit=self.commit,
            partitions=self.partitions,
            row_kind_column=options.row_kind_field,
            difference=difference,
            appends_difference=why_no_difference_can_be_appended(schema, options) is None,
            told_changes=told_changes,
            new_task_write=self.task_writes.open,
        )
        self.tags = TableTags(table=name, environment=environment, file_store=self.file_store)
        self.consumers = TableConsumers(table=name, environment=environment, file_store=self.file_store)
        self.time_travel = TimeTravel(table=name, file_store=self.file_store, options=options)
        restore = TableRestore(
            table=name,
            file_store=self.file_store,
            commit=self.commit,
            difference=difference,
            row_kind_column=options.row_kind_field,
            refuse_tracked=why_no_difference_can_be_appended(schema, options) or why_buckets_differ(schema),
            told_changes=told_changes,
            compact=lambda done: None if options.write_only else self.inline_compaction.compact_changed(done),
            new_task_write=self.task_writes.open,
        )
        self.branches = TableBranches(
            table=name,
            environment=environment,
            paths=paths,
            file_store=self.file_store,
            tags=self.tags,
            restore=restore,
            schema_id=schema.id,
            has_log=log is not None,
            tracks=has_streams,
            others_expire=options.others_expire,
            of_newest_schema=of_newest_schema,
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
                file_store=self.file_store,
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
                file_store=self.file_store,
                appends=self.complete_appends,
                lookup=self.old_rows,
                ends_transactions=options.log_consistency is LogConsistency.TRANSACTIONAL,
            )
            complete_change_scan = change_scan(difference.with_old_rows())
        self.streams = TableStreams(
            table=name,
            uuid=uuid,
            environment=environment,
            schema=schema,
            options=options,
            file_store=self.file_store,
            log=log,
            changes=self.changes,
            change_scan=self.change_scan,
            complete_change_scan=complete_change_scan,
            normalizer=normalizer,
            store_options=store_options,
        )
        self.system_tables = SystemTables(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            file_store=self.file_store,
            changes=self.change_scan,
        )
        self.rewrite = TableRewrite(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            options=options,
            file_store=self.file_store,
            commit=self.commit,
            lease=self.lease,
            has_log=log is not None,
            under=under,
        )
        self.alter = TableAlter(
            table=name,
            environment=environment,
            history=SchemaHistory(environment.file_io, paths),
            claims=ExternalClaims(environment.file_io, location),
            is_branch=branch != MAIN_BRANCH,
            log=log,
            check_table=self.file_store.check_still_there,
            in_force=lambda: schema_in_force(environment.file_io, paths),
            give_up_rewriting=self.rewrite.give_up,
        )
        self.lookup = PointLookup(
            table=name,
            schema=schema,
            file_store=self.file_store,
            only_compacted=only_compacted,
        )
        self.statistics = TableStatistics(
            table=name,
            environment=environment,
            paths=paths,
            schema=schema,
            file_store=self.file_store,
            commit=self.commit,
            only_compacted=only_compacted,
        )
        self.care = TableCare(
            table=name,
            environment=environment,
            file_store=self.file_store,
            commit=self.commit,
            partitions=self.partitions,
        )
        self.inline_compaction = InlineCompaction(
            table=name,
            file_store=self.file_store,
            care=self.care,
            stop_trigger=options.num_sorted_run_stop_trigger,
        )
        self.commit_listing = CommitListing(file_store=self.file_store, partitions=PartitionCodec(schema))
        self.health_check = TableHealthCheck(self.file_store)
        self.description = TableDescription(
            name=name,
            location=location,
            schema=schema,
            options=options,
            file_store=self.file_store,
            log=log,
            lease=self.lease,
            partitions=self.partitions,
        )
