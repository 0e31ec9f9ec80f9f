"""Metadata as tables: ``table.inspect.system_table("snapshots")``, or ``db.table$snapshots`` in a catalog."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa

from storage_lib.errors import NotFoundError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.encoding.json_document import decode_json, int64
from storage_lib.schema.evolution.evolved_stats import evolved_stats
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.column_stats import ColumnStats, SimpleStats, decode_stats
from storage_lib.schema.options.table_options import masked
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.schema.table_schema import DataField
from storage_lib.table.changelog.change_scan import ChangeScan
from storage_lib.table.inspect.rejected_records import RejectedRecords
from storage_lib.table.inspect.system_table_schemas import AUDIT_LOG, REJECTED_RECORDS, ROW_KIND, SYSTEM_TABLES
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from storage_lib.table.protocol.table_context import TableContext

Row = Mapping[str, object]


class SystemTables:
    """Reads metadata of the newest snapshot; only ``audit_log`` reads rows, and ``rejected`` rejected records."""

    def __init__(self, context: TableContext, *, changes: ChangeScan, rejected: RejectedRecords) -> None:
        self._table = context.name
        self._environment = context.environment
        self._paths = context.paths
        self._schema = context.schema
        self._schema_versions = SchemaVersions(
            context.schema, SchemaHistory(context.environment.file_io, context.paths)
        )
        self._file_store = context.file_store
        self._changes = changes
        self._rejected = rejected
        self._codec = PartitionCodec(context.schema)
        self._rows: Mapping[str, Callable[[], Iterator[Row]]] = {
            "snapshots": self._snapshots,
            "schemas": self._schemas,
            "options": self._options,
            "tags": self._tags,
            "branches": self._branches,
            "consumers": self._consumers,
            "manifests": self._manifests,
            "files": self._files,
            "partitions": self._partitions,
            "buckets": self._buckets,
            "statistics": self._statistics,
        }

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a system table; ``NotFoundError`` lists all names."""
        if name == AUDIT_LOG:
            return pa.schema([pa.field(ROW_KIND, pa.string(), nullable=False), *self._schema.arrow_schema])
        if name not in SYSTEM_TABLES:
            known = ", ".join(sorted([*SYSTEM_TABLES, AUDIT_LOG]))
            message = f"table {self._table} has no system table {name!r}; it has {known}"
            raise NotFoundError(message)
        return SYSTEM_TABLES[name]

    def read(self, name: str) -> pa.RecordBatchReader:
        """Read the rows of a system table; ``NotFoundError`` lists all names."""
        schema = self.schema(name)
        if name == AUDIT_LOG:
            return pa.RecordBatchReader.from_batches(schema, self._audit_log(schema))
        if name == REJECTED_RECORDS:
            return pa.RecordBatchReader.from_batches(schema, self._rejected.batches())
        rows = pa.Table.from_pylist(list(self._rows[name]()), schema=schema)
        return rows.to_reader()

    def _snapshots(self) -> Iterator[Row]:
        history = self._file_store.snapshots
        newest, earliest = history.latest_id(), history.earliest_id()
        ids = range(0) if newest is None or earliest is None else range(earliest, newest + 1)
        for snapshot in history.load_all(ids):
            part = SnapshotLogProperties.of_snapshot(snapshot)
            yield {
                **_fields_of(snapshot),
                "tracked": None if part is None else part.tracked,
                "log_offsets": None if part is None or part.offsets is None else part.offsets.to_json(),
            }

    def _schemas(self) -> Iterator[Row]:
        history = SchemaHistory(self._environment.file_io, self._paths)
        for schema_id in history.ids():
            document = json.loads(history.load(schema_id).to_json())
            yield {
                "schema_id": schema_id,
                "fields": json.dumps(document["fields"]),
                "partition_keys": json.dumps(document["partitionKeys"]),
                "primary_keys": json.dumps(document["primaryKeys"]),
                "options": json.dumps(masked(document["options"])),
                "comment": document.get("comment"),
                "update_time": document["timeMillis"],
            }

    def _options(self) -> Iterator[Row]:
        for key, value in sorted(masked(self._schema.options).items()):
            yield {"key": key, "value": value}

    def _tags(self) -> Iterator[Row]:
        for tag in self._file_store.tags.load_all():
            seconds = None if tag.time_retained_ms is None else tag.time_retained_ms / 1000
            yield {
                "tag_name": tag.name,
                "snapshot_id": tag.snapshot.id,
                "schema_id": tag.snapshot.schema_id,
                "commit_time": tag.snapshot.time_millis,
                "record_count": tag.snapshot.total_record_count,
                "create_time": tag.create_time_ms,
                "time_retained": None if seconds is None else f"PT{seconds:g}S",
            }

    def _branches(self) -> Iterator[Row]:
        made = {
            self._paths.branch_of_directory(entry.name): entry.modified_ms
            for entry in self._environment.file_io.list_directory(self._paths.branches_directory)
        }
        for name in self._file_store.branches.names():
            yield {"branch_name": name, "create_time": made.get(name)}

    def _consumers(self) -> Iterator[Row]:
        for consumer in self._file_store.consumers.load_all():
            yield {"consumer_id": consumer.name, "next_snapshot_id": consumer.next_snapshot_id}

    def _manifests(self) -> Iterator[Row]:
        snapshot = self._file_store.snapshots.latest()
        fields = self._schema.partition_fields
        for manifest in () if snapshot is None else self._file_store.scan.manifests(snapshot):
            low, high = _bounds(manifest.partition_stats, fields, manifest.num_entries)
            yield {
                "file_name": manifest.file_name,
                "file_size": manifest.file_size,
                "num_added_files": manifest.num_added_files,
                "num_deleted_files": manifest.num_deleted_files,
                "schema_id": manifest.schema_id,
                "min_partition_stats": low,
                "max_partition_stats": high,
                "min_row_id": manifest.min_row_id,
                "max_row_id": manifest.max_row_id,
            }

    def files(self, snapshot_id: int | None = None) -> pa.Table:
        """Return the system table ``files`` of a snapshot (default: the newest).

        Raises ``SnapshotExpiredError`` or ``NotFoundError`` if the snapshot does not exist.
        """
        history = self._file_store.snapshots
        snapshot = history.latest() if snapshot_id is None else history.load(snapshot_id)
        return pa.Table.from_pylist(list(self._files_of(snapshot)), schema=SYSTEM_TABLES["files"])

    def _files(self) -> Iterator[Row]:
        return self._files_of(self._file_store.snapshots.latest())

    def _files_of(self, snapshot: Snapshot | None) -> Iterator[Row]:
        for entry in self._file_store.scan.entries(snapshot):
            yield {**self._file_row(entry), "partition": self._partition_text(entry.partition), "bucket": entry.bucket}

    def _partitions(self) -> Iterator[Row]:
        grouped: dict[bytes, list[ManifestEntry]] = defaultdict(list)
        for entry in self._live():
            grouped[entry.partition].append(entry)
        for partition, entries in grouped.items():
            yield {"partition": self._partition_text(partition), **_summed(entries)}

    def _buckets(self) -> Iterator[Row]:
        grouped: dict[tuple[bytes, int], list[ManifestEntry]] = defaultdict(list)
        for entry in self._live():
            grouped[entry.partition, entry.bucket].append(entry)
        for (partition, bucket), entries in grouped.items():
            yield {"partition": self._partition_text(partition), "bucket": bucket, **_summed(entries)}

    def _statistics(self) -> Iterator[Row]:
        snapshot = self._file_store.snapshots.latest()
        if snapshot is None or snapshot.statistics is None:
            return
        path = self._paths.statistics_path(snapshot.statistics)
        yield decode_json(
            self._environment.file_io.read_bytes(path),
            lambda document: {
                "snapshot_id": int64(document["snapshotId"]),
                "schema_id": int64(document["schemaId"]),
                "mergedRecordCount": _whole_number(document.get("mergedRecordCount")),
                "mergedRecordSize": _whole_number(document.get("mergedRecordSize")),
                "colstat": json.dumps(document.get("colStats", {})),
            },
            lambda defect: f"{path} holds no statistics ({defect}); run analyze again",
        )

    def _audit_log(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield all known changes: the content of the earliest snapshot, then the changes since."""
        for split in self._changes.plan_all():
            for batch in self._changes.read(split):
                columns = [batch.column(batch.num_columns - 1), *batch.columns[:-1]]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _live(self) -> list[ManifestEntry]:
        return self._file_store.scan.entries(self._file_store.snapshots.latest())

    def _partition_text(self, partition: bytes) -> str:
        return partition_spec(self._codec.decode(partition))

    def _file_row(self, entry: ManifestEntry) -> Row:
        file = entry.file
        stats = self._stats_of(file)
        return {
            "file_path": self._file_store.path_of(entry),
            "file_format": file.file_name.rpartition(".")[2],
            "schema_id": file.schema_id,
            "level": file.level,
            "record_count": file.row_count,
            "file_size_in_bytes": file.file_size,
            "min_key": self._key_text(file, file.min_key),
            "max_key": self._key_text(file, file.max_key),
            "null_value_counts": _mapping_text({name: each.null_count for name, each in stats.items()}),
            "min_value_stats": _mapping_text({name: each.min for name, each in stats.items()}),
            "max_value_stats": _mapping_text({name: each.max for name, each in stats.items()}),
            "min_sequence_number": file.min_sequence_number,
            "max_sequence_number": file.max_sequence_number,
            "creation_time": file.creation_time_ms,
            "deleteRowCount": file.delete_row_count,
            "file_source": None if file.file_source is None else file.file_source.name,
            "first_row_id": file.first_row_id,
            "write_cols": None if file.write_cols is None else list(file.write_cols),
        }

    def _stats_of(self, file: DataFileMeta) -> Mapping[str, ColumnStats]:
        """Return statistics of the current columns, converted from those of the file's schema."""
        stored = self._schema_versions.of(file.schema_id)
        names = [each.name for each in stored.fields] if file.value_stats_cols is None else file.value_stats_cols
        if int.from_bytes(file.value_stats.min_values[:4], "big") != len(names):
            return {}
        stats = decode_stats(file.value_stats, [stored.field(name) for name in names], file.row_count)
        return stats if stored.id == self._schema.id else evolved_stats(stats, stored, self._schema, file.row_count)

    def _key_text(self, file: DataFileMeta, key: bytes) -> str | None:
        types = [field.type for field in self._schema_versions.of(file.schema_id).key_fields]
        if not types or int.from_bytes(key[:4], "big") != len(types):
            return None
        return f"[{', '.join(str(value) for value in decode_row(key, types))}]"


def partition_spec(values: Mapping[str, object]) -> str:
    """Return a partition's name in the system tables: ``dt=2024-05-14/hr=3``."""
    return "/".join(f"{name}={value}" for name, value in values.items())


def _fields_of(snapshot: Snapshot) -> Row:
    return {
        "snapshot_id": snapshot.id,
        "schema_id": snapshot.schema_id,
        "commit_user": snapshot.commit_user,
        "commit_identifier": snapshot.commit_identifier,
        "commit_kind": str(snapshot.commit_kind),
        "commit_time": snapshot.time_millis,
        "base_manifest_list": snapshot.base_manifest_list,
        "delta_manifest_list": snapshot.delta_manifest_list,
        "changelog_manifest_list": snapshot.changelog_manifest_list,
        "total_record_count": snapshot.total_record_count,
        "delta_record_count": snapshot.delta_record_count,
        "changelog_record_count": snapshot.changelog_record_count,
        "watermark": snapshot.watermark,
        "next_row_id": snapshot.next_row_id,
    }


def _summed(entries: Sequence[ManifestEntry]) -> Row:
    return {
        "record_count": sum(entry.file.row_count for entry in entries),
        "file_size_in_bytes": sum(entry.file.file_size for entry in entries),
        "file_count": len(entries),
        "last_update_time": max((entry.file.creation_time_ms or 0 for entry in entries), default=None),
    }


def _bounds(stats: SimpleStats, fields: Sequence[DataField], row_count: int) -> tuple[str, str]:
    """Return lower and upper bounds as ``{dt=2024-05-14, id=3}``; null means unknown."""
    if int.from_bytes(stats.min_values[:4], "big") != len(fields):
        return "{}", "{}"
    decoded = decode_stats(stats, fields, row_count)
    return (
        _mapping_text({name: each.min for name, each in decoded.items()}),
        _mapping_text({name: each.max for name, each in decoded.items()}),
    )


def _whole_number(value: object) -> int | None:
    return None if value is None else int(str(value))


def _mapping_text(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{name}={'null' if value is None else value}" for name, value in values.items()) + "}"
