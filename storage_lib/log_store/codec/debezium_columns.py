"""Convert whole columns to and from their encoding in debezium-json.

The encoding is that of Debezium's relational connectors with Kafka Connect's JsonConverter without schemas,
with ``decimal.handling.mode=precise`` and ``time.precision.mode=adaptive`` (docs/format.md, log record).

    BOOLEAN, integers, strings   the JSON value of that type
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

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.schema.encoding.decimal_bytes import decimals_of_bytes, unscaled_bytes

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import DataField

_TIME_MILLIS_DIGITS = 3
_DAY_MILLIS = 86_400_000
_MICROS_PER_MILLI = 1_000
_ISO_YEARS = "the years 0001 to 9999 (1677-09-21T00:12:44Z to 2262-04-11 with nanoseconds)"
_YEAR_DIGITS = 4
_READABLE_NANOS_MIN = -9_223_372_036_000_000_000
"""Arrow can't parse timestamps in the first second of the int64 nanosecond range."""


def json_type(arrow: pa.DataType) -> pa.DataType:
    """Return the Arrow type that a JSON reader must expect for a column of type ``arrow``."""
    if _is_text_in_json(arrow):
        return pa.string()
    if pa.types.is_time(arrow) or pa.types.is_timestamp(arrow):
        return pa.int64()
    return pa.int32() if pa.types.is_date(arrow) else arrow


def to_json_column(column: pa.Array, field: DataField) -> pa.Array:
    """Encode ``column`` for JSON as an array of ``json_type``.

    Raises ``InvalidInputError`` for a TIMESTAMP_LTZ that ISO-8601 can't represent.
    """
    arrow = column.type
    if pa.types.is_decimal(arrow):
        return _base64_text(unscaled_bytes(column))
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
    """Decode the output of ``to_json_column``. Raises ``ValueError`` for a value that is not of the field's type."""
    arrow = field.type.arrow
    if pa.types.is_decimal(arrow):
        return decimals_of_bytes(_bytes_of_base64(column, field.name), arrow)
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
        message = f"column {name!r}: the log can't represent a TIMESTAMP_LTZ outside {_ISO_YEARS}; filter such rows out"
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
        message = f"column {field.name!r} holds a number that is not a time of day in milliseconds"
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
