"""Kinds of values, and the common form in which two columns of different kinds are compared.

Equal values have one form, whichever engine stores them: 1.50 of a DECIMAL(9, 2) and 1.5 of a numeric are the text
``1.5``. docs/verify.md lists the forms.
"""

from __future__ import annotations

from enum import Enum

import polars as pl
import pyarrow as pa
import pyarrow.types as at

from storage_lib.schema.types.data_types import DECIMAL_PRECISION_MAX


class ValueKind(Enum):
    """Kind of a column, and the form of its values."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    """Form: decimal text without exponent, leading plus sign and trailing zeros."""
    FLOAT = "float"
    DOUBLE = "double"
    TEXT = "text"
    PADDED_TEXT = "char"
    """Form: text without trailing spaces."""
    BYTES = "bytes"
    DATE = "date"
    """Form: days since 1970-01-01."""
    TIME = "time"
    """Form: microseconds since midnight."""
    TIMESTAMP = "timestamp"
    """Form: microseconds since 1970-01-01, in UTC for a type with a time zone."""

    @property
    def polars(self) -> pl.DataType:
        """Type of the form."""
        return _POLARS[self]


_POLARS: dict[ValueKind, pl.DataType] = {
    ValueKind.BOOLEAN: pl.Boolean(),
    ValueKind.INTEGER: pl.Int64(),
    ValueKind.DECIMAL: pl.String(),
    ValueKind.FLOAT: pl.Float32(),
    ValueKind.DOUBLE: pl.Float64(),
    ValueKind.TEXT: pl.String(),
    ValueKind.PADDED_TEXT: pl.String(),
    ValueKind.BYTES: pl.Binary(),
    ValueKind.DATE: pl.Int64(),
    ValueKind.TIME: pl.Int64(),
    ValueKind.TIMESTAMP: pl.Int64(),
}

# Pairs of different kinds that have a common form. Others are refused: no value of one would equal one of the other.
_COMMON = {
    frozenset({ValueKind.INTEGER, ValueKind.DECIMAL}): ValueKind.DECIMAL,
    frozenset({ValueKind.INTEGER, ValueKind.TEXT}): ValueKind.DECIMAL,
    frozenset({ValueKind.DECIMAL, ValueKind.TEXT}): ValueKind.DECIMAL,
    frozenset({ValueKind.INTEGER, ValueKind.FLOAT}): ValueKind.FLOAT,
    frozenset({ValueKind.DECIMAL, ValueKind.FLOAT}): ValueKind.FLOAT,
    frozenset({ValueKind.INTEGER, ValueKind.DOUBLE}): ValueKind.DOUBLE,
    frozenset({ValueKind.DECIMAL, ValueKind.DOUBLE}): ValueKind.DOUBLE,
    frozenset({ValueKind.FLOAT, ValueKind.DOUBLE}): ValueKind.DOUBLE,
    frozenset({ValueKind.TEXT, ValueKind.PADDED_TEXT}): ValueKind.PADDED_TEXT,
}


def common_value_kind(first: ValueKind, second: ValueKind) -> ValueKind | None:
    """Return the kind in whose form values of both kinds are compared; None if they can't be equal."""
    return first if first is second else _COMMON.get(frozenset({first, second}))


def value_kind_of_arrow(type_: pa.DataType) -> ValueKind | None:
    """Return the kind of an Arrow type; None if its values can't be compared."""
    if at.is_dictionary(type_):
        return value_kind_of_arrow(type_.value_type)
    if at.is_uint64(type_) or (at.is_decimal(type_) and type_.precision <= DECIMAL_PRECISION_MAX):
        return ValueKind.DECIMAL
    return next((kind for matches, kind in _OF_ARROW if matches(type_)), None)


_OF_ARROW = (
    (at.is_boolean, ValueKind.BOOLEAN),
    (at.is_integer, ValueKind.INTEGER),
    (at.is_float64, ValueKind.DOUBLE),
    (at.is_floating, ValueKind.FLOAT),
    (at.is_string, ValueKind.TEXT),
    (at.is_large_string, ValueKind.TEXT),
    (at.is_string_view, ValueKind.TEXT),
    (at.is_null, ValueKind.TEXT),
    (at.is_binary, ValueKind.BYTES),
    (at.is_large_binary, ValueKind.BYTES),
    (at.is_binary_view, ValueKind.BYTES),
    (at.is_fixed_size_binary, ValueKind.BYTES),
    (at.is_date, ValueKind.DATE),
    (at.is_time, ValueKind.TIME),
    (at.is_timestamp, ValueKind.TIMESTAMP),
)
