"""``table.inspect``: metadata of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from storage_lib.built_once import built_once
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.table.assembly.table_reads import TableReads
from storage_lib.table.assembly.table_writes import TableWrites
from storage_lib.table.inspect.commit_listing import COMMITS_MAX, CommitListing, CommitSummary
from storage_lib.table.inspect.description import Description
from storage_lib.table.inspect.rejected_records import RejectedRecords
from storage_lib.table.inspect.system_tables import SystemTables
from storage_lib.table.inspect.table_description import TableDescription
from storage_lib.table.inspect.table_health import TableHealth, TableHealthCheck
from storage_lib.table.protocol.source_offsets import SourceOffsets
from storage_lib.table.protocol.table_context import TableContext


class TableInspection:
    """Metadata of one table, read at each call."""

    def __init__(self, context: TableContext, reads: TableReads, writes: TableWrites) -> None:
        self._context = context
        self._reads = reads
        self._writes = writes

    @built_once
    def _description(self) -> TableDescription:
        return TableDescription(self._context, partitions=self._writes.partitions, rejected=self._rejected_records)

    @built_once
    def _system_tables(self) -> SystemTables:
        return SystemTables(self._context, changes=self._reads.change_scan, rejected=self._rejected_records)

    @built_once
    def _rejected_records(self) -> RejectedRecords:
        return RejectedRecords(self._context, source_offsets=self._writes.commit.source_offsets)

    @built_once
    def _commit_listing(self) -> CommitListing:
        context = self._context
        return CommitListing(file_store=context.file_store, partitions=PartitionCodec(context.schema))

    @built_once
    def _health_check(self) -> TableHealthCheck:
        return TableHealthCheck(self._context.file_store, self._rejected_records)

    def describe(self, partition: Mapping[str, object] | None = None) -> Description:
        """See ``DynamicTable.describe``."""
        return self._description.describe(partition)

    def snapshots(self) -> pa.Table:
        """Return one row per snapshot, oldest first; the same as ``system_table("snapshots")``."""
        return self._system_tables.read("snapshots").read_all()

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return one row per live data file of a snapshot; for the newest, the same as ``system_table("files")``."""
        return self._system_tables.files(snapshot_id)

    def partitions(self) -> pa.Table:
        """Return one row per partition with files; the same as ``system_table("partitions")``."""
        return self._system_tables.read("partitions").read_all()

    def partition_values(self) -> pa.Table:
        """Return the values of each partition with files, in the partition columns' types."""
        return self._description.partition_values()

    def rejected(self) -> pa.Table:
        """Return the records of external sources that did not decode or fit, with their ids, positions and bytes.

        The same as ``system_table("rejected")``.
        """
        return self._system_tables.read("rejected").read_all()

    def rejected_records(
        self, *, ids: Sequence[str] | None = None, source: str | None = None, column: str | None = None
    ) -> pa.Table:
        """Return rejected records as they are stored: those with these ids, of a source, refused for a column.

        Raises ``NotFoundError`` for an id that no record has.
        """
        return self._rejected_records.chosen(ids=ids, source=source, column=column)

    def rejected_of_keys(self, keys: pa.Array, *, source: str) -> pa.Table:
        """Return the rejected records of a source, as they are stored, whose keys (binary) are among ``keys``."""
        return self._rejected_records.of_keys(source, keys)

    def rejected_since(self, time_millis: int, *, source: str) -> int:
        """Return how many of the rejected records of a source were stored at or after a time (epoch milliseconds)."""
        return self._rejected_records.count_since(time_millis, source)

    def rejected_count(self) -> int:
        """Return the number of rejected records, without reading them."""
        return self._rejected_records.count(self.latest_snapshot())

    def system_table(self, name: str) -> pa.Table:
        """Return metadata as a table: "snapshots", "files", "audit_log", ...; ``NotFoundError`` lists all names.

        The same as ``db.table$snapshots`` in a catalog and in SQL.
        """
        return self._system_tables.read(name).read_all()

    def read_system_table(self, name: str) -> pa.RecordBatchReader:
        """Read a system table batch by batch."""
        return self._system_tables.read(name)

    def system_table_schema(self, name: str) -> pa.Schema:
        """Return the columns of a system table; ``NotFoundError`` lists all names."""
        return self._system_tables.schema(name)

    def commits(self, *, after: int = 0, limit: int = COMMITS_MAX) -> tuple[CommitSummary, ...]:
        """Return the first ``limit`` commits after a snapshot's id that have not expired, oldest first."""
        return self._commit_listing.commits(after=after, limit=limit)

    def health(self) -> TableHealth:
        """Report the state of the files, cheaply enough to poll. ``describe`` also covers the log."""
        return self._health_check.check()

    def latest_snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None for a table without a commit."""
        return self._context.file_store.snapshots.latest()

    def snapshot(self, snapshot_id: int) -> Snapshot:
        """Return the snapshot with this id; ``SnapshotExpiredError`` or ``NotFoundError`` if it does not exist."""
        return self._context.file_store.snapshots.load(snapshot_id)

    def latest_snapshot_id(self) -> int | None:
        """Return the id of the newest snapshot without reading the snapshot."""
        return self._context.file_store.snapshots.latest_id()

    def earliest_snapshot_id(self) -> int | None:
        """Return the id of the oldest snapshot that has not expired; None for a table without a commit."""
        return self._context.file_store.snapshots.earliest_id()

    def snapshots_are_replaced(self) -> bool:
        """Return whether another engine rolled the table back, and this object has read snapshots that it deleted.

        Their ids are used again, so this object may return rows that the table no longer has: ``table.refresh()``
        returns one that does not. Our own rollbacks make a new snapshot, and replace none.
        """
        return self._context.file_store.snapshots.are_replaced()

    def source_positions(self, snapshot_id: int) -> SourceOffsets:
        """Return the offsets of all sources in a snapshot: external topics, or the sources of a materialized table.

        Raises ``SnapshotExpiredError`` or ``NotFoundError`` for a snapshot that does not exist.
        """
        return self._writes.commit.source_offsets(self.snapshot(snapshot_id))

    def source_offsets(self, source: str, *, snapshot_id: int | None = None) -> LogOffsets | None:
        """Return the offsets up to which a snapshot contains an external source; None if it contains none of it.

        ``snapshot_id`` None: the newest one. A rollback restores the offsets of the restored snapshot.
        """
        snapshot = self.latest_snapshot() if snapshot_id is None else self.snapshot(snapshot_id)
        return self._writes.commit.source_offsets(snapshot).of(source)

    def lease_holder(self) -> str | None:
        """Return the holder of the writers' lease; None if it is free."""
        return self._context.leases.holder()

    def lease_number(self) -> int | None:
        """Return the number of the newest lease; None if no lease was acquired yet."""
        return self._context.leases.newest()

    def file_path(self, entry: ManifestEntry) -> str:
        """Return the path of the data file of a plan's entry."""
        return self._context.file_store.path_of(entry)

    def data_paths(self) -> frozenset[str]:
        """Return the paths of all data files that a snapshot, tag or branch references."""
        return frozenset(self._context.file_store.references.of_table().data)

    def find_commit(self, commit_user: str, commit_identifier: int) -> Snapshot | None:
        """Return the snapshot of a commit; None if none has this identity, or a rollback has taken it back.

        Of an expired snapshot, files and properties are not known.
        """
        return self._context.file_store.snapshots.find_commit(commit_user, commit_identifier)

    def check_still_there(self) -> None:
        """Raise ``NotFoundError`` if the table was dropped, or dropped and recreated, since it was opened."""
        self._context.file_store.check_still_there()
