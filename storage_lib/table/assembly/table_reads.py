"""Constructs and connects the parts that read one branch of a table, each at its first use."""

from __future__ import annotations

from storage_lib.built_once import built_once
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
        self._context = context

    @built_once
    def time_travel(self) -> TimeTravel:
        """Finds the snapshot that a read names."""
        return TimeTravel(self._context)

    @built_once
    def batch_reads(self) -> BatchReads:
        """Reads the rows of a snapshot."""
        return BatchReads(self._context)

    @built_once
    def lookup(self) -> PointLookup:
        """Looks up the rows that batch reads return."""
        return self._lookup(only_compacted=self.batch_reads.only_compacted)

    @built_once
    def old_rows(self) -> PointLookup:
        """Looks up pre-images, as soon as they are committed, even if batch reads do not show them yet."""
        return self._lookup(only_compacted=False)

    @built_once
    def changes(self) -> SnapshotChanges:
        """Reads the changes of one snapshot."""
        return SnapshotChanges(self._context.file_store)

    @built_once
    def complete_appends(self) -> CompleteAppends:
        """Adds pre-images to the changes of a snapshot."""
        return CompleteAppends(
            changes=self.changes,
            snapshots=self._context.file_store.snapshots,
            lookup=self.old_rows,
            primary_keys=self._context.schema.primary_keys,
        )

    @built_once
    def difference(self) -> SnapshotDiff:
        """Compares the contents of two snapshots."""
        context = self._context
        return SnapshotDiff(
            file_store=context.file_store,
            schema=context.schema,
            with_update_before=context.logs_old_rows,
            merges=bool(context.schema.primary_keys) and not context.options.newest_wins,
        )

    @built_once
    def change_scan(self) -> ChangeScan:
        """Reads the changes between two snapshots."""
        return ChangeScan(self._context, changes=self.changes, difference=self.difference)

    @built_once
    def streams(self) -> TableStreams:
        """Opens streams of changes."""
        # Streams are complete already where tables without a key count rows, and where a log in mode "all" contains the
        # old rows; only a stream's own state may have others.
        context = self._context
        normalizer: ChangelogNormalizer | None = None
        if context.schema.primary_keys:
            normalizer = ChangelogNormalizer(context, appends=self.complete_appends, lookup=self.old_rows)
        is_complete = normalizer is None or (context.log is not None and context.logs_old_rows)
        complete_change_scan = self.change_scan
        if not is_complete:
            complete_change_scan = ChangeScan(context, changes=self.changes, difference=self.difference.with_old_rows())
        return TableStreams(
            context,
            changes=self.changes,
            change_scan=self.change_scan,
            complete_change_scan=complete_change_scan,
            normalizer=normalizer,
            is_complete=is_complete,
        )

    def _lookup(self, *, only_compacted: bool) -> PointLookup:
        context = self._context
        return PointLookup(
            table=context.name, schema=context.schema, file_store=context.file_store, only_compacted=only_compacted
        )
