"""Builds the description of a table that DESCRIBE, the command line, the Airflow page and the demo show."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

import pyarrow as pa

from storage_lib.errors import NotFoundError, StorageError
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.encoding.moment_text import moment_text, utc_datetime
from storage_lib.schema.options.materialized_table import freshness_options
from storage_lib.schema.options.table_options import LogConsistency, masked
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.inspect.description import Description
from storage_lib.table.inspect.last_refresh import last_refresh
from storage_lib.table.inspect.rejected_records import RejectedRecords
from storage_lib.table.inspect.table_health import runs_by_bucket
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from storage_lib.table.protocol.source_offsets import SOURCES
from storage_lib.table.protocol.table_context import TableContext


class TableDescription:
    """Describes one table. Reads metadata only, at the cost of planning a scan."""

    def __init__(self, context: TableContext, *, partitions: PartitionSpecs, rejected: RejectedRecords) -> None:
        self._name = context.name
        self._location = context.location
        self._schema = context.schema
        self._options = context.options
        self._file_store = context.file_store
        self._log = context.log
        self._view = context.iceberg_view
        self._leases = context.leases
        self._partitions = partitions
        self._rejected = rejected
        self._codec = PartitionCodec(context.schema)

    def describe(self, partition: Mapping[str, object] | None = None) -> Description:
        """Describe the table or one partition, as DESCRIBE TABLE EXTENDED [PARTITION] does.

        Raises ``NotFoundError`` for a partition without files.
        """
        snapshot = self._file_store.snapshots.latest()
        predicate = None if not partition else self._partitions.predicate(partition)
        entries = self._file_store.scan.entries(snapshot, partition_filter=predicate)
        if partition and not entries:
            message = f"table {self._name} has no partition {dict(partition)}; partitions() lists those it has"
            raise NotFoundError(message)
        runs = runs_by_bucket(entries)
        part = None if snapshot is None else SnapshotLogProperties.of_snapshot(snapshot)
        options = masked(self._schema.options)
        modified = None if snapshot is None else _last_modified(snapshot, entries if partition else [])
        watermark = None if snapshot is None else snapshot.watermark
        location = self._path(entries) if partition else self._location
        holder = self._leases.holder()
        size = sum(entry.file.file_size for entry in entries)
        rows = sum(entry.file.row_count for entry in entries)
        is_compacted = self._is_compacted(entries, runs)
        fields = {
            "name": self._name,
            "kind": "managed dynamic table" if self._options.definition is None else "materialized table",
            "comment": self._schema.comment or "",
            "columns": ", ".join(f"{field.name} {field.type}" for field in self._schema.fields),
            "primary key": ", ".join(self._schema.primary_keys),
            "partitioned by": ", ".join(self._schema.partition_keys),
            "bucket": str(self._schema.bucket_count),
            "change-tracking": str(self._options.change_tracking).lower(),
            **self._log_lines(part),
            **self._definition_lines(),
            **self._view_lines(snapshot),
            **self._delta_lines(snapshot),
            "source offsets": "" if snapshot is None else snapshot.properties.get(SOURCES, ""),
            **self._rejected_lines(snapshot),
            "file.path": location,
            "file.format": self._options.file_format,
            "partition": ", ".join(f"{key}={value}" for key, value in (partition or {}).items()),
            "num-files": str(len(entries)),
            "size": str(size),
            "rows (physical)": str(rows),
            "runs per bucket": str(max(runs.values(), default=0)),
            "compacted": str(is_compacted).lower(),
            "last-modified": "" if modified is None else moment_text(modified),
            "watermark": "" if watermark is None else moment_text(watermark),
            "newest snapshot": "" if snapshot is None else str(snapshot.id),
            "lease held by": holder or "",
            "options": ", ".join(f"{key}={value}" for key, value in sorted(options.items())),
        }
        return Description(
            name=self._name,
            comment=self._schema.comment,
            columns={field.name: str(field.type) for field in self._schema.fields},
            primary_key=tuple(self._schema.primary_keys),
            partition_by=tuple(self._schema.partition_keys),
            bucket_count=self._schema.bucket_count,
            change_tracking=self._options.change_tracking,
            has_log=self._log is not None,
            location=location,
            file_format=self._options.file_format,
            partition=dict(partition or {}),
            file_count=len(entries),
            size_bytes=size,
            row_count=rows,
            is_compacted=is_compacted,
            last_modified=utc_datetime(modified),
            watermark=utc_datetime(watermark),
            snapshot_id=None if snapshot is None else snapshot.id,
            lease_holder=holder,
            options=dict(options),
            fields=fields,
        )

    def _path(self, entries: list[ManifestEntry]) -> str:
        """Return the directory of the partition with these files; for several partitions, their common directory."""
        paths = {self._codec.path(entry.partition).rstrip("/") for entry in entries}
        return f"{self._location}/{posixpath.commonpath(paths)}".rstrip("/")

    def partition_values(self) -> pa.Table:
        """Return one row per partition of the newest snapshot, in the order of its manifests."""
        entries = self._file_store.scan.entries(self._file_store.snapshots.latest())
        found = dict.fromkeys(entry.partition for entry in entries)
        schema = pa.schema([(field.name, field.type.arrow) for field in self._schema.partition_fields])
        return pa.Table.from_pylist([self._codec.decode(each) for each in found], schema=schema)

    def _is_compacted(self, entries: list[ManifestEntry], runs: Mapping[tuple[bytes, int], int]) -> bool:
        """Return whether each bucket has one run, not in level 0 unless the table is append-only."""
        is_done = self._schema.is_append_only or all(entry.file.level > 0 for entry in entries)
        return is_done and all(count == 1 for count in runs.values())

    def _definition_lines(self) -> dict[str, str]:
        definition = self._options.definition
        if definition is None:
            return {}
        refreshed, freshness = last_refresh(self._file_store.snapshots), definition.freshness
        return {
            "query": definition.query,
            "sources": ", ".join((*definition.sources, *definition.tables_of_catalogs)),
            "freshness": "" if freshness is None else " ".join(freshness_options(freshness).values()),
            "refresh mode": str(definition.refresh_mode),
            "refresh status": str(definition.status),
            "last refresh": ""
            if refreshed is None
            else f"snapshot {refreshed.id} at {moment_text(refreshed.time_millis)}",
        }

    def _rejected_lines(self, snapshot: Snapshot | None) -> dict[str, str]:
        pointer = self._rejected.pointer(snapshot)
        if pointer is None:
            return {}
        newest = moment_text(pointer.newest_millis)
        return {"rejected records": f"{pointer.record_count} ({pointer.size_bytes} bytes), the newest at {newest}"}

    def _view_lines(self, snapshot: Snapshot | None) -> dict[str, str]:
        if self._view is None:
            return {}
        newest = 0 if snapshot is None else snapshot.id
        try:
            shown, waiting, problem = self._view.shown(), self._view.waiting(), self._view.problem()
        except StorageError as error:
            return {"iceberg view": self._view.directory.root, "iceberg view shows": f"unknown: {error}"}
        lag = newest - (shown or 0) - waiting
        behind = f", {lag} behind" if lag > 0 else ""
        if waiting:
            behind += f"; {waiting} later ones wait for a compaction to merge their rows"
        first = "a full compaction" if waiting else "the next commit"
        text = f"nothing yet; {first} creates it" if shown is None else f"snapshot {shown}{behind}"
        if shown is not None and problem is not None:
            text += f"; {problem}"
        return {"iceberg view": self._view.directory.root, "iceberg view shows": text}

    def _delta_lines(self, snapshot: Snapshot | None) -> dict[str, str]:
        if self._view is None or not self._options.delta_enabled:
            return {}
        newest = 0 if snapshot is None else snapshot.id
        try:
            shown = self._view.delta.shown_snapshot()
        except StorageError as error:
            return {"delta log shows": f"unknown: {error}"}
        if shown is None or shown < 0:
            return {"delta log shows": "nothing of this table; the next commit writes it"}
        return {"delta log shows": f"snapshot {shown}{f', {newest - shown} behind' if newest > shown else ''}"}

    def _log_lines(self, part: SnapshotLogProperties | None) -> dict[str, str]:
        if self._log is None:
            return {"log.system": "none"}
        offsets = None if part is None else part.offsets
        lines = {
            "log.system": str(self._options.effective_log_system),
            "log.consistency": str(self._options.log_consistency),
            "log offsets": "" if offsets is None else offsets.to_json(),
        }
        try:
            # The rest of the description stays available if the broker is down or the topic was deleted.
            lines |= self._log.description()
            end = self._log.latest_offsets()
        except StorageError as error:
            lines["log end"] = f"unknown: {error}"
            return lines
        lines["log end"] = end.to_json()
        if self._options.log_consistency is LogConsistency.EVENTUAL:
            tiered = (offsets or LogOffsets()).in_log(end.log_id)
            behind = sum(max(0, offset - tiered.of(bucket)) for bucket, offset in end.next_offsets.items())
            lines["log records not yet in files"] = str(behind)
        return lines


def _last_modified(snapshot: Snapshot, of_partition: list[ManifestEntry]) -> int:
    """Return when the table, or a partition with these files, last changed (epoch milliseconds)."""
    made = [entry.file.creation_time_ms for entry in of_partition if entry.file.creation_time_ms is not None]
    return max(made, default=snapshot.time_millis)
