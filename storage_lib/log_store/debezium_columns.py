"""How one column's values look inside debezium-json, and back: whole columns at a time.

The spellings are those of Debezium's relational connectors behind Kafka Connect's JsonConverter without schemas,
with ``decimal.handling.mode=precise`` and ``time.precision.mode=adaptive`` (docs/format.md, log record).

    BOOLEAN, integers, strings   as JSON has them
    FLOAT, DOUBLE                a number; "NaN", "Infinity", "-Infinity" as strings, as Jackson writes them
    DECIMAL                      base64 of the unscaled value: big-endian two's complement, as few bytes as it takes
    BINARY, VARBINARY            base64
    DATE                         days since 1970-01-01
    TIME(p)                      ms of the day for p <= 3, else microseconds
    TIMESTAMP(p)                 epoch ms for p <= 3, microseconds for p <= 6, else nanoseconds; no time zone
    TIMESTAMP_LTZ(p)             ISO-8601 in UTC: 2024-05-14T12:00:00.123Z
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField

_DECIMAL_BYTES = 16
_TIME_MILLIS_DIGITS = 3
_DAY_MILLIS = 86_400_000
_MICROS_PER_MILLI = 1_000
_SIGN_BIT = 7
_ISO_YEARS = "the years 0001 to 9999 (1677-09-21T00:12:44Z to 2262-04-11 with nanoseconds)"
_YEAR_DIGITS = 4
_READABLE_NANOS_MIN = -9_223_372_036_000_000_000
"""Arrow reads no text of the second in which int64 nanoseconds begin."""


def json_type(arrow: pa.DataType) -> pa.DataType:
    """The Arrow type of the JSON spelling: what a JSON reader shall expect for a column of type ``arrow``."""
    if _is_text_in_json(arrow):
        return pa.string()
    if pa.types.is_time(arrow) or pa.types.is_timestamp(arrow):
        return pa.int64()
    return pa.int32() if pa.types.is_date(arrow) else arrow


def to_json_column(column: pa.Array, field: DataField) -> pa.Array:
    """Spell ``column`` for JSON: an array of ``json_type``.

    Raises ``InvalidInputError`` for a TIMESTAMP_LTZ that ISO-8601 has no spelling for.
    """
    arrow = column.type
    if pa.types.is_decimal(arrow):
        return _base64_text(_unscaled_bytes(column))
    if pa.types.is_binary(arrow):
        return _base64_text(column)
    if pa.types.is_timestamp(arrow):
        return column.cast(pa.int64()) if arrow.tz is None else _iso_text(column, field.name)
    if pa.types.is_date(arrow):
        return column.cast(pa.int32())
    if pa.types.is_time(arrow):
        millis = column.cast(pa.int32()).cast(pa.int64())
        return millis if _has_millis(field) else pc.multiply(millis, _MICROS_PER_MILLI)
    return column


def from_json_column(column: pa.Array, field: DataField) -> pa.Array:
    """Read back what ``to_json_column`` spelled; ``ValueError`` for a spelling that is not of the field's type."""
    arrow = field.type.arrow
    if pa.types.is_decimal(arrow):
        return _decimals(_bytes_of_base64(column, field.name), arrow)
    if pa.types.is_binary(arrow):
        return _bytes_of_base64(column, field.name)
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return column.cast(arrow)
    if pa.types.is_time(arrow):
        return _times(column, field)
    return column


def _is_text_in_json(arrow: pa.DataType) -> bool:
    is_zoned = pa.types.is_timestamp(arrow) and arrow.tz is not None
    return is_zoned or pa.types.is_decimal(arrow) or pa.types.is_binary(arrow)


def _has_millis(field: DataField) -> bool:
    return (field.type.precision or 0) <= _TIME_MILLIS_DIGITS


def _iso_text(column: pa.Array, name: str) -> pa.Array:
    text = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    is_out = pc.or_(pc.starts_with(text, "-"), pc.greater(pc.find_substring(text, "-"), _YEAR_DIGITS))
    if column.type.unit == "ns":
        is_out = pc.or_(is_out, pc.less(column.cast(pa.int64()), _READABLE_NANOS_MIN))
    if pc.any(is_out).as_py():
        message = f"column {name!r}: the log can't spell a TIMESTAMP_LTZ outside {_ISO_YEARS}; filter such rows out"
        raise InvalidInputError(message)
    return pc.binary_join_element_wise(pc.replace_substring(text, " ", "T"), "Z", "")


def _times(column: pa.Array, field: DataField) -> pa.Array:
    per_milli = 1 if _has_millis(field) else _MICROS_PER_MILLI
    millis = pc.divide(column, per_milli)
    is_time = pc.and_(
        pc.equal(pc.multiply(millis, per_milli), column),
        pc.and_(pc.greater_equal(column, 0), pc.less(millis, _DAY_MILLIS)),
    )
    if not pc.all(is_time, min_count=0).as_py():
        message = f"column {field.name!r} holds a number that is no time of the day in milliseconds"
        raise ValueError(message)
    return millis.cast(pa.int32()).cast(field.type.arrow)


def _base64_text(column: pa.Array) -> pa.Array:
    return pl.Series(pl.from_arrow(column)).bin.encode("base64").to_arrow().cast(pa.string())


def _bytes_of_base64(column: pa.Array, name: str) -> pa.Array:
    try:
        decoded = pl.Series(pl.from_arrow(column)).str.decode("base64", strict=True)
    except pl.exceptions.ComputeError as error:
        message = f"column {name!r} is not base64"
        raise ValueError(message) from error
    return decoded.to_arrow().cast(pa.binary())


def _unscaled_bytes(column: pa.Array) -> pa.Array:
    """``BigInteger.toByteArray`` of every unscaled value: all bytes but leading ones that only repeat the sign."""
    count = len(column)
    little_endian = np.frombuffer(column.buffers()[1], np.uint8).reshape(-1, _DECIMAL_BYTES)
    big_endian = little_endian[column.offset : column.offset + count, ::-1]
    sign = big_endian[:, 0] >> _SIGN_BIT
    differs = big_endian != (sign * np.uint8(0xFF))[:, None]
    has_digits = differs.any(axis=1)
    first = np.where(has_digits, differs.argmax(axis=1), _DECIMAL_BYTES - 1)
    needs_sign_byte = has_digits & ((big_endian[np.arange(count), first] >> _SIGN_BIT) != sign)
    start = first - needs_sign_byte
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(_DECIMAL_BYTES - start, out=offsets[1:])
    flat = np.ascontiguousarray(big_endian[np.arange(_DECIMAL_BYTES) >= start[:, None]])
    text = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(flat)])
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.binary()))


def _decimals(unscaled: pa.Array, arrow: pa.DataType) -> pa.Array:
    count = len(unscaled)
    filled = pc.fill_null(unscaled, b"\0")
    _, offset_bytes, data = filled.buffers()
    offsets = np.frombuffer(offset_bytes, np.int32)[filled.offset : filled.offset + count + 1]
    lengths = np.diff(offsets)
    if count and (lengths.min() < 1 or lengths.max() > _DECIMAL_BYTES):
        message = f"a {arrow} of {lengths.max()} bytes"
        raise ValueError(message)
    flat = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if count else np.zeros(0, np.uint8)
    sign = flat[offsets[:-1] - offsets[0]] >> _SIGN_BIT
    big_endian = np.repeat((sign * np.uint8(0xFF))[:, None], _DECIMAL_BYTES, axis=1)
    big_endian[np.arange(_DECIMAL_BYTES) >= (_DECIMAL_BYTES - lengths)[:, None]] = flat
    little_endian = np.ascontiguousarray(big_endian[:, ::-1])
    decimals = pa.Array.from_buffers(arrow, count, [None, pa.py_buffer(little_endian)])
    decimals.validate(full=True)
    return pc.if_else(unscaled.is_valid(), decimals, pa.scalar(None, arrow))
