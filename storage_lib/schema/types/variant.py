"""VARIANT: a semi-structured value, stored as two byte strings in the encoding of Spark and Parquet.

    struct<value: binary not null, metadata: binary not null>

``value`` holds the value, ``metadata`` the names of its fields (https://parquet.apache.org/docs/file-format/types/
variantencoding/). Like Spark, we distinguish such a struct from a ROW by a mark on the field ``metadata``. The bytes
are opaque here, so variants are never compared: equal values may have different bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError

VALUE: Final = "value"
METADATA: Final = "metadata"
_MARK = {b"variant": b"true"}
_SHREDDED = "typed_value"
_VERSION = 1
_VERSION_MASK = 0x0F
_EMPTY = b""

VARIANT_ARROW: Final = pa.struct(
    [
        pa.field(VALUE, pa.binary(), nullable=False),
        pa.field(METADATA, pa.binary(), nullable=False, metadata=_MARK),
    ]
)
"""Arrow type of every VARIANT column. Arrow's equality ignores the mark."""


def is_variant(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is a struct of the two byte strings with the mark."""
    if not pa.types.is_struct(arrow) or sorted(_names(arrow)) != sorted((VALUE, METADATA)):
        return False
    metadata: dict[bytes, bytes] = arrow.field(METADATA).metadata or {}
    return all(metadata.get(key) == value for key, value in _MARK.items())


def has_variants(arrow: pa.DataType) -> bool:
    """Whether an Arrow type is that of VARIANT or contains it."""
    if is_variant(arrow):
        return True
    return pa.types.is_nested(arrow) and any(has_variants(arrow.field(each).type) for each in range(arrow.num_fields))


def holds_variants(arrow: pa.DataType) -> bool:
    """Whether an Arrow type, marked or not, can hold variants: a struct of exactly the two byte strings."""
    if not pa.types.is_struct(arrow) or sorted(_names(arrow)) != sorted((VALUE, METADATA)):
        return False
    return all(_is_bytes(arrow.field(name).type) for name in (VALUE, METADATA))


def as_variants(array: pa.Array) -> pa.Array:
    """Convert a struct array of the two byte strings, in any order, to ``VARIANT_ARROW``.

    Raises ``InvalidInputError`` for shredded variants, for a variant that lacks one of the two, and for an unknown
    metadata version.
    """
    names = _names(array.type) if pa.types.is_struct(array.type) else []
    if _SHREDDED in names:
        message = (
            f"its variants are shredded: parts of them are in columns of their own ({array.type}), which this library "
            "does not put together. Write the table with variant.shreddingSchema left out and "
            "variant.inferShreddingSchema=false, and rewrite what was written before (in Spark: INSERT OVERWRITE from "
            "the table itself)"
        )
        raise InvalidInputError(message)
    if not holds_variants(array.type):
        message = f"a VARIANT is a struct of the binaries {VALUE!r} and {METADATA!r}, not {array.type}"
        raise InvalidInputError(message)
    parts = [_part(array, name) for name in (VALUE, METADATA)]
    for name, part in zip((VALUE, METADATA), parts, strict=True):
        missing = pc.and_(pc.is_null(part), pc.is_valid(array))
        if part.null_count and pc.any(missing).as_py():
            message = (
                f"the variant in row {pc.index(missing, value=True).as_py()} has no {name!r}; make the whole variant "
                f"null, or give it both, {VALUE!r} and {METADATA!r}"
            )
            raise InvalidInputError(message)
    _check_encoding(parts, array.is_null().to_numpy(zero_copy_only=False))
    return _variants(parts, array)


def filled(array: pa.StructArray) -> pa.StructArray:
    """Replace the parts of null variants by empty bytes, because the parts are required columns in Parquet.

    Arrow's kernels leave nulls below a null even if the type does not allow them.
    """
    parts = [_part(array, name) for name in (VALUE, METADATA)]
    return array if all(part.null_count == 0 for part in parts) else _variants(parts, array)


def _variants(parts: Sequence[pa.Array], of: pa.StructArray) -> pa.StructArray:
    whole = [part.fill_null(_EMPTY) for part in parts]
    return pa.StructArray.from_arrays(whole, fields=list(VARIANT_ARROW), mask=of.is_null() if of.null_count else None)


def _part(array: pa.StructArray, name: str) -> pa.Array:
    part = array.field(array.type.get_field_index(name))
    return part if part.type == pa.binary() else part.cast(pa.binary())


@cache
def _first_bytes() -> pa.Array:
    # Not a constant: Arrow imports pandas to convert a list, which takes longer than to read a small table.
    return pa.array([bytes([byte]) for byte in range(256) if byte & _VERSION_MASK == _VERSION], pa.binary())


def _check_encoding(parts: Sequence[pa.Array], nulls: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
    """Check the version in the first byte of the metadata: other engines refuse a whole file with another one."""
    value, metadata = parts
    first = pc.binary_slice(metadata, 0, 1)
    is_right = pc.and_(pc.is_in(first, value_set=_first_bytes()), pc.greater(pc.binary_length(value), 0))
    wrong = ~pc.fill_null(is_right, fill_value=False).to_numpy(zero_copy_only=False) & ~nulls
    if wrong.any():
        row = int(np.argmax(wrong))
        message = (
            f"row {row} is not a variant: its value has {len(value[row].as_py())} bytes, and its metadata begins with "
            f"{first[row].as_py()!r} where encoding version {_VERSION} belongs. Make variants with parse_json or "
            "to_variant_object in Spark, or pyspark.sql.types.VariantVal.parseJson"
        )
        raise InvalidInputError(message)


def _names(arrow: pa.StructType) -> list[str]:
    return [arrow.field(index).name for index in range(arrow.num_fields)]


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_binary(arrow) or pa.types.is_large_binary(arrow) or pa.types.is_binary_view(arrow))
