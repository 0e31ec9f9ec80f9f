"""Codec of a list of manifests, in the order of the commits that wrote them (docs/format.md, 1.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.manifest.manifest_file import (
    ManifestFileMeta,
    check_version,
    stats_from_record,
    stats_to_record,
)
from storage_lib.file_store.manifest.manifest_schemas import FORMAT_VERSION, MANIFEST_LIST_SCHEMA
from storage_lib.format.avro_container import decode_container, encode_container


def encode_manifest_list(manifests: Sequence[ManifestFileMeta]) -> bytes:
    """Return the content of the file; an empty list gives a readable file without records."""
    return encode_container(MANIFEST_LIST_SCHEMA, [_to_record(manifest) for manifest in manifests])


def decode_manifest_list(data: bytes, source: str) -> tuple[ManifestFileMeta, ...]:
    """Return the manifests in commit order; raises ``CorruptFileError`` naming ``source`` if this is not a list."""
    records = decode_container(data, source)
    try:
        return tuple(_from_record(record) for record in records)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        message = f"{source} is an Avro file but not a manifest list: {error!r}"
        raise CorruptFileError(message) from error


def _to_record(manifest: ManifestFileMeta) -> dict[str, object]:
    return {
        "_VERSION": FORMAT_VERSION,
        "_FILE_NAME": manifest.file_name,
        "_FILE_SIZE": manifest.file_size,
        "_NUM_ADDED_FILES": manifest.num_added_files,
        "_NUM_DELETED_FILES": manifest.num_deleted_files,
        "_PARTITION_STATS": stats_to_record(manifest.partition_stats),
        "_SCHEMA_ID": manifest.schema_id,
        "_MIN_BUCKET": manifest.min_bucket,
        "_MAX_BUCKET": manifest.max_bucket,
        "_MIN_LEVEL": manifest.min_level,
        "_MAX_LEVEL": manifest.max_level,
        "_MIN_ROW_ID": manifest.min_row_id,
        "_MAX_ROW_ID": manifest.max_row_id,
    }


def _from_record(record: Mapping[str, Any]) -> ManifestFileMeta:
    check_version(record)
    return ManifestFileMeta(
        file_name=record["_FILE_NAME"],
        file_size=record["_FILE_SIZE"],
        num_added_files=record["_NUM_ADDED_FILES"],
        num_deleted_files=record["_NUM_DELETED_FILES"],
        partition_stats=stats_from_record(record["_PARTITION_STATS"]),
        schema_id=record["_SCHEMA_ID"],
        min_bucket=record.get("_MIN_BUCKET"),
        max_bucket=record.get("_MAX_BUCKET"),
        min_level=record.get("_MIN_LEVEL"),
        max_level=record.get("_MAX_LEVEL"),
        min_row_id=record.get("_MIN_ROW_ID"),
        max_row_id=record.get("_MAX_ROW_ID"),
    )
