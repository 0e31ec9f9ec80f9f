"""The rejected records of a snapshot, as its properties name them (docs/format.md, 1.18)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.schema.encoding.json_document import decode_json, int64
from storage_lib.schema.options.table_options import OWN_PREFIX

REJECTED = f"{OWN_PREFIX}rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedPointer:
    """The list of the files with rejected records, and what they contain in all.

    ``first_expiry_millis``: when the newest record of that file was written whose records expire first.
    """

    list_name: str
    record_count: int
    size_bytes: int
    newest_millis: int
    first_expiry_millis: int

    def to_properties(self) -> dict[str, str]:
        """Return the snapshot property."""
        document = {
            "list": self.list_name,
            "records": self.record_count,
            "bytes": self.size_bytes,
            "newest": self.newest_millis,
            "firstExpiry": self.first_expiry_millis,
        }
        return {REJECTED: json.dumps(document)}

    @classmethod
    def of_properties(cls, properties: Mapping[str, str], origin: str) -> RejectedPointer | None:
        """Decode a snapshot's properties; None without rejected records. ``CorruptFileError`` names ``origin``."""
        text = properties.get(REJECTED)
        if text is None:
            return None
        return decode_json(
            text,
            lambda document: cls(
                list_name=str(document["list"]),
                record_count=int64(document["records"]),
                size_bytes=int64(document["bytes"]),
                newest_millis=int64(document["newest"]),
                first_expiry_millis=int64(document["firstExpiry"]),
            ),
            lambda defect: f"property {REJECTED} of {origin} can't be decoded: {defect}",
        )
