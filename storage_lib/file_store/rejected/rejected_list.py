"""The list of the files with rejected records: JSON, in the order of the commits, never changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
from storage_lib.schema.encoding.json_document import decode_json, int64

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedFile:
    """A Parquet file of rejected records. The times are those at which its records were written."""

    name: str
    record_count: int
    size_bytes: int
    oldest_millis: int
    newest_millis: int


def pointer_to(list_name: str, files: Sequence[RejectedFile]) -> RejectedPointer:
    """Return the pointer to a list of these files, at least one."""
    return RejectedPointer(
        list_name=list_name,
        record_count=sum(each.record_count for each in files),
        size_bytes=sum(each.size_bytes for each in files),
        newest_millis=max(each.newest_millis for each in files),
        first_expiry_millis=min(each.newest_millis for each in files),
    )


def encode_list(files: Sequence[RejectedFile]) -> bytes:
    """Encode the list."""
    entries = [
        {
            "name": each.name,
            "records": each.record_count,
            "bytes": each.size_bytes,
            "oldest": each.oldest_millis,
            "newest": each.newest_millis,
        }
        for each in files
    ]
    return json.dumps({"version": _VERSION, "files": entries}).encode()


def decode_list(data: bytes, path: str) -> tuple[RejectedFile, ...]:
    """Decode the list at ``path``; ``CorruptFileError`` if it is damaged."""
    return decode_json(data, _decoded, lambda defect: f"{path} is not a list of rejected records: {defect}")


def _decoded(document: Any) -> tuple[RejectedFile, ...]:
    if document["version"] != _VERSION:
        message = f"its version is {document['version']}, which needs a newer release of this library"
        raise ValueError(message)
    return tuple(
        RejectedFile(
            name=str(each["name"]),
            record_count=int64(each["records"]),
            size_bytes=int64(each["bytes"]),
            oldest_millis=int64(each["oldest"]),
            newest_millis=int64(each["newest"]),
        )
        for each in document["files"]
    )
