"""Order of keys (docs/format.md): numeric; strings and bytes by unsigned byte; columns one after another.

A key value, from a column or from a file's metadata, is mapped to one domain in which it compares:
values of up to 8 bytes to an integer, strings, bytes and wider decimals to themselves. Floats are in Java's total
order: -0.0 before 0.0, NaN last and equal to itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.types.data_types import DataType, TypeRoot

ComparableKey: TypeAlias = tuple[int | str | bytes | Decimal, ...]
"""A key as a tuple; tuples of one table compare in key order."""

EPOCH_DAY = date(1970, 1, 1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  a TIMESTAMP has no zone
EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SIGN_OUT = 0x7FFF_FFFF_FFFF_FFFF
DECIMAL_DIGITS_IN_INT64 = 18
_MICROS_OF_MILLI = 1000
_REMEMBERED_KEYS = 8192
_REMEMBERED_BYTES_MAX = 256
WIDE = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY)


def comparable_keys(types: tuple[DataType, ...]) -> Callable[[bytes], ComparableKey]:
    """Return the function that converts a serialized key of these types to a tuple that compares in key order.

    It is picklable, and caches keys: planning, compactions and commits need the bounds of the same files repeatedly.
    """
    return partial(_comparable_key, types)


def comparable_value(value: object, data_type: DataType) -> int | str | bytes | Decimal:  # noqa: PLR0911  one per type
    """Convert one key value (not null) of that type. Raises ``TypeError`` if the value is not of the type."""
    match value:
        case bool() | int():
            return int(value)
        case str() | bytes():
            return value
        case float():
            return _ordered_float(value)
        case Decimal():
            return value if _is_wide_decimal(data_type) else int(value.scaleb(data_type.scale or 0))
        case datetime():
            return (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // MICROSECOND
        case date():
            return (value - EPOCH_DAY).days
        case time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
        case _:
            message = f"{value!r} is not a key of type {data_type}"
            raise TypeError(message)


def column_key(key: ComparableKey, types: Sequence[DataType]) -> ComparableKey | None:
    """Convert a comparable key, or its first columns, to the values that ``comparable_integers`` makes of columns.

    They differ for timestamps of milliseconds only. None if there is no such value: the key is between two of them,
    or the column has nanoseconds, which metadata truncates.
    """
    converted: list[int | str | bytes | Decimal] = []
    for value, data_type in zip(key, types, strict=False):
        unit = data_type.arrow.unit if pa.types.is_timestamp(data_type.arrow) else "us"
        if unit == "us":
            converted.append(value)
        elif unit == "ms" and isinstance(value, int) and value % _MICROS_OF_MILLI == 0:
            converted.append(value // _MICROS_OF_MILLI)
        else:
            return None
    return tuple(converted)


def is_integer_like(data_type: DataType) -> bool:
    """Return whether keys of this type compare as 8-byte integers."""
    return data_type.root not in WIDE and not _is_wide_decimal(data_type)


def comparable_integers(column: pa.Array) -> npt.NDArray[np.int64]:
    """Convert a column (no nulls) of an integer-like type to integers in the order of its values."""
    kind = column.type
    if pa.types.is_decimal(kind):
        words = np.frombuffer(column.buffers()[1], dtype="<i8")
        return words[2 * column.offset : 2 * (column.offset + len(column)) : 2]
    if pa.types.is_floating(kind):
        return _ordered_floats(column.to_numpy().astype(np.float64, copy=False))
    if pa.types.is_boolean(kind):
        return column.cast(pa.int8()).to_numpy().astype(np.int64)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return column.view(pa.int32()).to_numpy().astype(np.int64)
    if pa.types.is_timestamp(kind):
        return column.view(pa.int64()).to_numpy()
    return column.to_numpy().astype(np.int64, copy=False)


def _comparable_key(types: tuple[DataType, ...], key: bytes) -> ComparableKey:
    return _remembered(types, key) if len(key) <= _REMEMBERED_BYTES_MAX else _decoded(types, key)


def _decoded(types: tuple[DataType, ...], key: bytes) -> ComparableKey:
    return tuple(comparable_value(value, type_) for value, type_ in zip(decode_row(key, types), types, strict=True))


_remembered = lru_cache(_REMEMBERED_KEYS)(_decoded)


def _is_wide_decimal(data_type: DataType) -> bool:
    return data_type.root is TypeRoot.DECIMAL and (data_type.precision or 0) > DECIMAL_DIGITS_IN_INT64


def _ordered_float(value: float) -> int:
    # A FLOAT widened to a double keeps its order, so one rule serves both.
    (bits,) = struct.unpack("<q", struct.pack("<d", float("nan") if value != value else value))  # noqa: PLR0124  NaN
    return int(bits) if bits >= 0 else int(bits) ^ SIGN_OUT


def _ordered_floats(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    canonical = np.where(np.isnan(values), np.nan, values)
    bits = canonical.view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(SIGN_OUT))
