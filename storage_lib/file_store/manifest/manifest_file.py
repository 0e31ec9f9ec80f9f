"""Codec of a manifest and of its metadata in a manifest list (docs/format.md, 1.6 and 1.7).

``ManifestDirectory`` reads and writes the files. Missing or extra fields of other releases are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource, SimpleStats
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.manifest.manifest_schemas import FORMAT_VERSION, MANIFEST_SCHEMA
from storage_lib.format.avro_container import decode_container, encode_container


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFileMeta:
    """Metadata of a manifest in a manifest list; bounds are None if another writer omitted them.

    ``partition_stats`` bounds each partition column separately, over all entries, added and deleted.
    """

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int
    partition_stats: SimpleStats
    schema_id: int
    min_bucket: int | None = None
    max_bucket: int | None = None
    min_level: int | None = None
    max_level: int | None = None
    min_row_id: int | None = None
    max_row_id: int | None = None

    @property
    def num_entries(self) -> int:
        """Number of entries in the file."""
        return self.num_added_files + self.num_deleted_files


def encode_manifest(entries: Sequence[ManifestEntry]) -> bytes:
    """Return the content of the file; equal entries give equal bytes."""
    return encode_container(MANIFEST_SCHEMA, [_entry_to_record(entry) for entry in entries])


def decode_manifest(data: bytes, source: str) -> tuple[ManifestEntry, ...]:
    """Return the entries in file order; raises ``CorruptFileError`` naming ``source`` if this is not a manifest."""
    records = decode_container(data, source)
    try:
        return tuple(_entry_from_record(record) for record in records)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"{source} is an Avro file but not a manifest: {error!r}"
        raise CorruptFileError(message) from error


def describe_manifest(
    file_name: str,
    file_size: int,
    entries: Sequence[ManifestEntry],
    partition_stats_of: Callable[[Sequence[bytes]], SimpleStats],
) -> ManifestFileMeta:
    """Return the metadata, for the manifest list, of a manifest of these entries (at least one).

    ``partition_stats_of`` gets the serialized partition of every entry.
    """
    added = sum(entry.kind is FileKind.ADD for entry in entries)
    return ManifestFileMeta(
        file_name=file_name,
        file_size=file_size,
        num_added_files=added,
        num_deleted_files=len(entries) - added,
        partition_stats=partition_stats_of([entry.partition for entry in entries]),
        schema_id=max(entry.file.schema_id for entry in entries),
        min_bucket=min(entry.bucket for entry in entries),
        max_bucket=max(entry.bucket for entry in entries),
        min_level=min(entry.file.level for entry in entries),
        max_level=max(entry.file.level for entry in entries),
        **_row_id_bounds(entries),
    )


def stats_to_record(stats: SimpleStats) -> dict[str, object]:
    """Convert SimpleStats to an Avro record."""
    return {
        "_MIN_VALUES": stats.min_values,
        "_MAX_VALUES": stats.max_values,
        "_NULL_COUNTS": list(stats.null_counts),
    }


def stats_from_record(record: Mapping[str, Any]) -> SimpleStats:
    """Convert an Avro record to SimpleStats; missing null counts become an empty tuple."""
    counts = record.get("_NULL_COUNTS")
    return SimpleStats(
        min_values=record["_MIN_VALUES"],
        max_values=record["_MAX_VALUES"],
        null_counts=() if counts is None else tuple(counts),
    )


def check_version(record: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for a record of an unknown format version."""
    version = record["_VERSION"]
    if version != FORMAT_VERSION:
        message = f"format version {version}, but only version {FORMAT_VERSION} can be read"
        raise ValueError(message)


def _row_id_bounds(entries: Sequence[ManifestEntry]) -> dict[str, int | None]:
    ids = [(first, entry.file.row_count) for entry in entries if (first := entry.file.first_row_id) is not None]
    if len(ids) < len(entries):
        return {"min_row_id": None, "max_row_id": None}
    return {"min_row_id": min(first for first, _ in ids), "max_row_id": max(first + count - 1 for first, count in ids)}


def _entry_to_record(entry: ManifestEntry) -> dict[str, object]:
    file = entry.file
    return {
        "_VERSION": FORMAT_VERSION,
        "_KIND": int(entry.kind),
        "_PARTITION": entry.partition,
        "_BUCKET": entry.bucket,
        "_TOTAL_BUCKETS": entry.total_buckets,
        "_FILE": {
            "_FILE_NAME": file.file_name,
            "_FILE_SIZE": file.file_size,
            "_ROW_COUNT": file.row_count,
            "_MIN_KEY": file.min_key,
            "_MAX_KEY": file.max_key,
            "_KEY_STATS": stats_to_record(file.key_stats),
            "_VALUE_STATS": stats_to_record(file.value_stats),
            "_MIN_SEQUENCE_NUMBER": file.min_sequence_number,
            "_MAX_SEQUENCE_NUMBER": file.max_sequence_number,
            "_SCHEMA_ID": file.schema_id,
            "_LEVEL": file.level,
            "_EXTRA_FILES": list(file.extra_files),
            "_CREATION_TIME": file.creation_time_ms,
            "_DELETE_ROW_COUNT": file.delete_row_count,
            "_EMBEDDED_FILE_INDEX": file.embedded_file_index,
            "_FILE_SOURCE": None if file.file_source is None else int(file.file_source),
            "_VALUE_STATS_COLS": None if file.value_stats_cols is None else list(file.value_stats_cols),
            "_EXTERNAL_PATH": file.external_path,
            "_FIRST_ROW_ID": file.first_row_id,
            "_WRITE_COLS": None if file.write_cols is None else list(file.write_cols),
        },
    }


def _entry_from_record(record: Mapping[str, Any]) -> ManifestEntry:
    check_version(record)
    file: Mapping[str, Any] = record["_FILE"]
    # Fields from _CREATION_TIME on were added in later releases: the schema of an older file lacks them.
    source = file.get("_FILE_SOURCE")
    return ManifestEntry(
        kind=FileKind(record["_KIND"]),
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        total_buckets=record["_TOTAL_BUCKETS"],
        file=DataFileMeta(
            file_name=file["_FILE_NAME"],
            file_size=file["_FILE_SIZE"],
            row_count=file["_ROW_COUNT"],
            min_key=file["_MIN_KEY"],
            max_key=file["_MAX_KEY"],
            key_stats=stats_from_record(file["_KEY_STATS"]),
            value_stats=stats_from_record(file["_VALUE_STATS"]),
            min_sequence_number=file["_MIN_SEQUENCE_NUMBER"],
            max_sequence_number=file["_MAX_SEQUENCE_NUMBER"],
            schema_id=file["_SCHEMA_ID"],
            level=file["_LEVEL"],
            extra_files=tuple(file.get("_EXTRA_FILES") or ()),
            creation_time_ms=file.get("_CREATION_TIME"),
            delete_row_count=file.get("_DELETE_ROW_COUNT"),
            embedded_file_index=file.get("_EMBEDDED_FILE_INDEX"),
            file_source=None if source is None else FileSource(source),
            value_stats_cols=_names(file.get("_VALUE_STATS_COLS")),
            external_path=file.get("_EXTERNAL_PATH"),
            first_row_id=file.get("_FIRST_ROW_ID"),
            write_cols=_names(file.get("_WRITE_COLS")),
        ),
    )


def _names(value: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if value is None else tuple(value)
