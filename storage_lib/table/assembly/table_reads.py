"""Constructs and connects the parts that read one branch of a table."""

from __future__ import annotations

from storage_lib.table.changelog.change_scan import ChangeScan
from storage_lib.table.changelog.changelog_normalizer import ChangelogNormalizer
from storage_lib.table.changelog.complete_appends import CompleteAppends
from storage_lib.table.changelog.snapshot_changes import SnapshotChanges
from storage_lib.table.changelog.snapshot_diff import SnapshotDiff
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.read.batch_reads import BatchReads
from storage_lib.table.read.point_lookup import PointLookup
from storage_lib.table.read.time_travel import TimeTravel
from storage_lib.table.stream.table_streams import TableStreams


class TableReads:
    """Batch reads, lookups, changes between snapshots, and streams of one table."""

    def __init__(self, context: TableContext) -> None:
        self.time_travel = TimeTravel(context)
        self.batch_reads = BatchReads(context)
        self.lookup = _lookup(context, only_compacted=self.batch_reads.only_compacted)
        # Pre-images must be found as soon as they are committed, even if batch reads do not show them yet.
        self.old_rows = _lookup(context, only_compacted=False)
        self.changes = SnapshotChanges(context.file_store)
        self.complete_appends = CompleteAppends(
            changes=self.changes,
            snapshots=context.file_store.snapshots,
            lookup=self.old_rows,
            primary_keys=context.schema.primary_keys,
        )
        self.difference = SnapshotDiff(
            file_store=context.file_store,
            schema=context.schema,
            with_update_before=context.logs_old_rows,
            merges=bool(context.schema.primary_keys) and not context.options.newest_wins,
        )
        self.change_scan = ChangeScan(context, changes=self.changes, difference=self.difference)
        self.streams = self._streams(context)

    def _streams(self, context: TableContext) -> TableStreams:
        # No normalizer where streams are complete already: tables without a key count rows, and a log in mode "all"
        # contains the old rows.
        normalizer: ChangelogNormalizer | None = None
        complete_change_scan = self.change_scan
        if context.schema.primary_keys and (context.log is None or not context.logs_old_rows):
            normalizer = ChangelogNormalizer(context, appends=self.complete_appends, lookup=self.old_rows)
            complete_change_scan = ChangeScan(context, changes=self.changes, difference=self.difference.with_old_rows())
        return TableStreams(
            context,
            changes=self.changes,
            change_scan=self.change_scan,
            complete_change_scan=complete_change_scan,
            normalizer=normalizer,
        )


def _lookup(context: TableContext, *, only_compacted: bool) -> PointLookup:
    return PointLookup(
        table=context.name, schema=context.schema, file_store=context.file_store, only_compacted=only_compacted
    )
