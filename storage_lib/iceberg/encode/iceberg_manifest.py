"""Manifests and manifest lists: data files and delete files of an Iceberg snapshot, as Avro files.

An entry that is ADDED inherits its numbers from the manifest list; an EXISTING one states them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import fastavro

from storage_lib.format.avro_container import decode_container
from storage_lib.iceberg.encode.manifest_avro import entry_schema, list_schema
from storage_lib.iceberg.encode.partition_record import SPEC_ID, partition_avro, partition_fields
from storage_lib.schema.options.table_options import IcebergVersion
from storage_lib.schema.table_schema import TableSchema

_EXISTING, _ADDED, _DELETED = range(3)
_SYNC_BYTES = 16
_CODEC = "deflate"
"""Each reader knows it; DuckDB 1.5 does not know zstandard."""


class Content(IntEnum):
    """What a manifest lists."""

    DATA = 0
    DELETES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A data file or a delete file. ``sequence`` is the number of the snapshot that added it, as is its id.

    ``partition`` has the values as Avro stores them. A delete file hides ``row_count`` rows of ``data_file``. If it is
    a deletion vector, ``path`` is its Puffin file, and ``offset`` and ``blob_size`` locate it there.
    """

    path: str
    row_count: int
    size_bytes: int
    partition: Mapping[str, object]
    sequence: int
    first_row_id: int | None = None
    bounds: Mapping[str, Any] = field(default_factory=dict)
    data_file: str | None = None
    offset: int | None = None
    blob_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRecord:
    """A manifest in a manifest list. Rows of ADDED data files get row ids from ``first_row_id`` on.

    ``partitions`` are those of ``partition_summaries``; None if they are not known.
    """

    path: str
    size_bytes: int
    content: Content
    sequence: int
    min_sequence: int
    added_count: int
    added_rows: int
    existing_count: int
    existing_rows: int
    first_row_id: int | None
    partitions: Sequence[Mapping[str, object]] | None = None


def encode_manifest(
    existing: Sequence[ListedFile],
    added: Sequence[ListedFile],
    *,
    content: Content,
    schema: TableSchema,
    iceberg_schema: Mapping[str, Any],
    version: IcebergVersion,
) -> bytes:
    """Encode a manifest with EXISTING and ADDED entries."""
    records = [_entry(each, content, is_added=False) for each in existing]
    records += [_entry(each, content, is_added=True) for each in added]
    header = {
        "schema": json.dumps(iceberg_schema),
        "schema-id": str(schema.id),
        "partition-spec": json.dumps(partition_fields(schema)),
        "partition-spec-id": str(SPEC_ID),
        "format-version": str(version),
        "content": "data" if content is Content.DATA else "deletes",
    }
    return _container(entry_schema(partition_avro(schema), version), records, header)


def decode_manifest(data: bytes, source: str, record: ManifestRecord) -> tuple[ListedFile, ...]:
    """Return the files of a manifest; numbers that they inherit are filled in. Raises ``CorruptFileError``."""
    files: list[ListedFile] = []
    next_row_id = record.first_row_id
    for entry in decode_container(data, source):
        if entry["status"] == _DELETED:
            continue
        file = entry["data_file"]
        first_row_id = file.get("first_row_id")
        if record.content is Content.DATA and first_row_id is None and next_row_id is not None:
            first_row_id, next_row_id = next_row_id, next_row_id + file["record_count"]
        sequence = record.sequence if entry["sequence_number"] is None else entry["sequence_number"]
        files.append(
            ListedFile(
                path=file["file_path"],
                row_count=file["record_count"],
                size_bytes=file["file_size_in_bytes"],
                partition=file["partition"],
                sequence=sequence,
                first_row_id=first_row_id,
                bounds={name: file[name] for name in BOUNDS if file[name] is not None},
                data_file=file["referenced_data_file"],
                offset=file.get("content_offset"),
                blob_size=file.get("content_size_in_bytes"),
            )
        )
    return tuple(files)


BOUNDS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
"""Fields of an entry that describe the values of a data file's columns."""


def encode_manifest_list(
    records: Sequence[ManifestRecord], *, sequence: int, parent: int | None, version: IcebergVersion
) -> bytes:
    """Encode the manifest list of snapshot ``sequence``, which is its id as well."""
    header = {
        "format-version": str(version),
        "snapshot-id": str(sequence),
        "parent-snapshot-id": "null" if parent is None else str(parent),
        "sequence-number": str(sequence),
    }
    return _container(list_schema(version), [_listed(each) for each in records], header)


def decode_manifest_list(data: bytes, source: str) -> tuple[ManifestRecord, ...]:
    """Return the manifests of a list. Raises ``CorruptFileError``."""
    return tuple(
        ManifestRecord(
            path=each["manifest_path"],
            size_bytes=each["manifest_length"],
            content=Content(each["content"]),
            sequence=each["sequence_number"],
            min_sequence=each["min_sequence_number"],
            added_count=each["added_files_count"],
            added_rows=each["added_rows_count"],
            existing_count=each["existing_files_count"],
            existing_rows=each["existing_rows_count"],
            first_row_id=each.get("first_row_id"),
            partitions=each["partitions"],
        )
        for each in decode_container(data, source)
    )


def _entry(file: ListedFile, content: Content, *, is_added: bool) -> dict[str, Any]:
    is_data = content is Content.DATA
    return {
        "status": _ADDED if is_added else _EXISTING,
        "snapshot_id": file.sequence,
        "sequence_number": None if is_added else file.sequence,
        "file_sequence_number": None if is_added else file.sequence,
        "data_file": {
            "content": int(content),
            "file_path": file.path,
            "file_format": "PARQUET" if file.offset is None else "PUFFIN",
            "partition": file.partition,
            "record_count": file.row_count,
            "file_size_in_bytes": file.size_bytes,
            "first_row_id": file.first_row_id if is_data and not is_added else None,
            "referenced_data_file": file.data_file,
            "content_offset": file.offset,
            "content_size_in_bytes": file.blob_size,
            **file.bounds,
        },
    }


def _listed(record: ManifestRecord) -> dict[str, Any]:
    return {
        "manifest_path": record.path,
        "manifest_length": record.size_bytes,
        "partition_spec_id": SPEC_ID,
        "content": int(record.content),
        "sequence_number": record.sequence,
        "min_sequence_number": record.min_sequence,
        "added_snapshot_id": record.sequence,
        "added_files_count": record.added_count,
        "existing_files_count": record.existing_count,
        "deleted_files_count": 0,
        "added_rows_count": record.added_rows,
        "existing_rows_count": record.existing_rows,
        "deleted_rows_count": 0,
        "partitions": record.partitions,
        "first_row_id": record.first_row_id,
    }


def _container(schema: Mapping[str, Any], records: Sequence[Mapping[str, Any]], header: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    # The sync marker only has to be unlikely in the data.
    sync = blake2b(repr(header).encode(), digest_size=_SYNC_BYTES).digest()
    fastavro.writer(
        out, fastavro.parse_schema(dict(schema)), records, codec=_CODEC, metadata=dict(header), sync_marker=sync
    )
    return out.getvalue()
