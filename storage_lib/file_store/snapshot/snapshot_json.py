"""JSON encoding of a snapshot (docs/format.md, 1.4): keys in the order of the format, null ones omitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.schema.encoding.json_document import decode_json

_KEYS: Mapping[str, str] = {
    "version": "version",
    "uuid": "uuid",
    "id": "id",
    "schemaId": "schema_id",
    "baseManifestList": "base_manifest_list",
    "baseManifestListSize": "base_manifest_list_size",
    "deltaManifestList": "delta_manifest_list",
    "deltaManifestListSize": "delta_manifest_list_size",
    "changelogManifestList": "changelog_manifest_list",
    "changelogManifestListSize": "changelog_manifest_list_size",
    "indexManifest": "index_manifest",
    "commitUser": "commit_user",
    "commitIdentifier": "commit_identifier",
    "commitKind": "commit_kind",
    "timeMillis": "time_millis",
    "totalRecordCount": "total_record_count",
    "deltaRecordCount": "delta_record_count",
    "changelogRecordCount": "changelog_record_count",
    "watermark": "watermark",
    "statistics": "statistics",
    "properties": "properties",
    "nextRowId": "next_row_id",
    "operation": "operation",
}
"""JSON keys and their fields of ``Snapshot``, in the order in which they are written."""

_REQUIRED: dict[str, type] = {
    "id": int,
    "schemaId": int,
    "baseManifestList": str,
    "deltaManifestList": str,
    "commitUser": str,
    "commitIdentifier": int,
    "commitKind": str,
    "timeMillis": int,
}


_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_OPTIONAL: dict[str, type] = {
    "version": int,
    "baseManifestListSize": int,
    "deltaManifestListSize": int,
    "changelogManifestList": str,
    "changelogManifestListSize": int,
    "indexManifest": str,
    "totalRecordCount": int,
    "deltaRecordCount": int,
    "changelogRecordCount": int,
    "watermark": int,
    "statistics": str,
    "properties": dict,
    "nextRowId": int,
}


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Return the content of the file. Unknown keys come last, as they were read."""
    document: dict[str, object] = {}
    for key, attribute in _KEYS.items():
        value = getattr(snapshot, attribute)
        if value is None or (key == "properties" and not value):
            continue
        document[key] = dict(value) if key == "properties" else value
    document.update(snapshot.unknown)
    return json.dumps(document, indent=2, ensure_ascii=False).encode()


def decode_snapshot(data: bytes, source: str, *, snapshot_id: int | None = None) -> Snapshot:
    """Decode a snapshot; raises ``CorruptFileError`` naming ``source`` and the invalid key.

    ``snapshot_id`` is the id in the file's name, if it has one: a snapshot that claims another id would be the base of
    commits, and expire, in place of the other. Record counts that very old writers omitted become 0, a missing
    version 1.
    """
    document = _parse(data, source)
    for key, kind in _REQUIRED.items():
        if not isinstance(document.get(key), kind):
            message = f"{source} is not a snapshot: key {key!r} is {document.get(key)!r}, expected {kind.__name__}"
            raise CorruptFileError(message)
    for key, kind in _OPTIONAL.items():
        value = document.get(key)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            message = f"{source} is not a snapshot: key {key!r} is {value!r}, expected {kind.__name__}"
            raise CorruptFileError(message)
    for key, kind in (_REQUIRED | _OPTIONAL).items():
        value = document.get(key)
        if kind is int and value is not None and not _INT64_MIN <= value <= _INT64_MAX:
            message = f"{source} is not a snapshot: key {key!r} is {value}, which does not fit 64 bits"
            raise CorruptFileError(message)
    if snapshot_id is not None and document["id"] != snapshot_id:
        message = f"{source} is not snapshot {snapshot_id}: its key 'id' is {document['id']}"
        raise CorruptFileError(message)
    known = {attribute: document[key] for key, attribute in _KEYS.items() if document.get(key) is not None}
    known.setdefault("version", 1)
    known.setdefault("total_record_count", 0)
    known.setdefault("delta_record_count", 0)
    known["commit_kind"] = _commit_kind(document["commitKind"], source)
    unknown = {key: value for key, value in document.items() if key not in _KEYS and value is not None}
    build: Callable[..., Snapshot] = Snapshot
    return build(unknown=unknown, source=source, **known)


def _parse(data: bytes, source: str) -> dict[str, Any]:
    document = decode_json(data, lambda parsed: parsed, lambda defect: f"{source} is not JSON: {defect}")
    if not isinstance(document, dict):
        message = f"{source} is not a snapshot: its JSON is not an object"
        raise CorruptFileError(message)
    return document


def _commit_kind(text: str, source: str) -> CommitKind:
    try:
        return CommitKind(text)
    except ValueError as error:
        kinds = ", ".join(CommitKind)
        message = f"{source} has the commit kind {text!r}, known are {kinds}: it needs a newer release of this library"
        raise CorruptFileError(message) from error
