"""A deletion vector in a Puffin file of its own (https://iceberg.apache.org/puffin-spec/).

    PFA1 | blob | PFA1 | footer, JSON | its size, 4 bytes little-endian | 4 bytes of flags | PFA1
    blob = size of magic and bitmap, 4 bytes big-endian | magic | bitmap | CRC-32 of both, big-endian

Several vectors may share a file, but DuckDB 1.5.5 then applies a file's vector to others, and PyIceberg 0.12 applies
each vector that is in the file. So each has its own.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass

from pyroaring import BitMap64

from storage_lib.file_store.data_file.deletion_vector import CHECKSUM_BYTES, MAGIC_64, SIZE_BYTES

_MAGIC = b"PFA1"
_NO_FLAGS = bytes(4)
_POSITION_FIELD_ID = 2147483645
BLOB_OFFSET = len(_MAGIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinVector:
    """A Puffin file's bytes, and the size of its only blob."""

    data: bytes
    blob_size: int


def encode_puffin(rows: BitMap64, data_file: str) -> PuffinVector:
    """Encode the vector of one data file, of which ``rows`` are the hidden positions."""
    body = vector_of(rows)
    blob = len(body).to_bytes(SIZE_BYTES, "big") + body + zlib.crc32(body).to_bytes(CHECKSUM_BYTES, "big")
    described = {
        "type": "deletion-vector-v1",
        "fields": [_POSITION_FIELD_ID],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": BLOB_OFFSET,
        "length": len(blob),
        "properties": {"referenced-data-file": data_file, "cardinality": str(len(rows))},
    }
    footer = json.dumps({"blobs": [described], "properties": {}}, separators=(",", ":")).encode()
    size = len(footer).to_bytes(4, "little")
    data = _MAGIC + blob + _MAGIC + footer + size + _NO_FLAGS + _MAGIC
    return PuffinVector(data=data, blob_size=len(blob))


def vector_of(rows: BitMap64) -> bytes:
    """Return a vector without its size and its checksum."""
    return MAGIC_64 + rows.serialize()
