"""Hand-made variants as bytes (https://parquet.apache.org/docs/file-format/types/variantencoding/)."""

from __future__ import annotations

from storage_lib.schema.types.variant import METADATA, VALUE

Variant = dict[str, bytes]

NO_NAMES = b"\x01\x00\x00"
"""Metadata of a value without fields: version 1, an empty dictionary."""


def text(of: str) -> Variant:
    """Encode a text of at most 63 bytes."""
    data = of.encode()
    return {VALUE: bytes([len(data) << 2 | 1]) + data, METADATA: NO_NAMES}


def number(of: int) -> Variant:
    """Encode a number between -128 and 127."""
    return {VALUE: b"\x0c" + of.to_bytes(1, "little", signed=True), METADATA: NO_NAMES}


def object_of(name: str, of: int) -> Variant:
    """Encode ``{name: of}``, with a name of at most 255 bytes and a number between -128 and 127."""
    inside = number(of)[VALUE]
    data = name.encode()
    return {
        VALUE: bytes([2, 1, 0, 0, len(inside)]) + inside,
        METADATA: bytes([1, 1, 0, len(data)]) + data,
    }
