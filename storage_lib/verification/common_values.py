"""Convert a column to the form in which two sides are compared (``ValueKind``)."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from storage_lib.verification.value_kind import ValueKind, refused_column

_TRAILING_ZEROS = r"^([+-]?\d+\.\d*?)0*$"
_PLAIN_NUMBER = r"^[+-]?\d+(\.\d*)?$"
_MICROS = pa.timestamp("us")


def common_values(array: pa.Array, form: ValueKind, name: str, of: str) -> pl.Series:
    """Return the values in the common form. ``name`` of ``of`` is the column, for the error of a value without one."""
    if at.is_dictionary(array.type):
        array = array.dictionary_decode()
    if at.is_null(array.type):
        return pl.Series(name, [None] * len(array), dtype=form.polars)
    try:
        return _CONVERSIONS[form](array).cast(form.polars).rename(name)
    except (pa.ArrowInvalid, pl.exceptions.InvalidOperationError) as error:
        raise refused_column(name, of, f"a value has no form as {form.value}: {error}") from error


def _as_is(array: pa.Array) -> pl.Series:
    return pl.Series(array)


def _decimal(array: pa.Array) -> pl.Series:
    text = pl.Series(array).cast(pl.String)
    shown = text.str.replace(_TRAILING_ZEROS, "${1}").str.strip_suffix(".").str.strip_prefix("+")
    plain = pl.select(pl.when(text.str.contains(_PLAIN_NUMBER)).then(shown).otherwise(text)).to_series()
    return plain.replace("-0", "0")


def _real(array: pa.Array, type_: type[pl.Float32 | pl.Float64]) -> pl.Series:
    values = pl.Series(array)
    if at.is_decimal(array.type) or values.dtype == pl.UInt64:
        values = values.cast(pl.String)  # parsed, it is the nearest number; a division would not always find that
    values = values.cast(type_)
    return pl.select(pl.when(values == 0).then(0.0).otherwise(values)).to_series()  # -0.0 becomes 0.0


def _float(array: pa.Array) -> pl.Series:
    return _real(array, pl.Float32)


def _double(array: pa.Array) -> pl.Series:
    return _real(array, pl.Float64)


def _padded(array: pa.Array) -> pl.Series:
    return pl.Series(array).str.strip_chars_end(" ")


def _bytes(array: pa.Array) -> pl.Series:
    return pl.Series(array.cast(pa.large_binary()))


def _days(array: pa.Array) -> pl.Series:
    if at.is_integer(array.type):
        return pl.Series(array)
    return pl.Series(array.cast(pa.date32()).cast(pa.int32()))


def _micros_of_day(array: pa.Array) -> pl.Series:
    if at.is_integer(array.type):
        return pl.Series(array)
    return pl.Series(array.cast(pa.time64("us")).cast(pa.int64()))


def _micros(array: pa.Array) -> pl.Series:
    if at.is_integer(array.type):
        return pl.Series(array)
    return pl.Series(pc.cast(array, pa.timestamp("us", array.type.tz)).cast(pa.int64()))


_CONVERSIONS = {
    ValueKind.BOOLEAN: _as_is,
    ValueKind.INTEGER: _as_is,
    ValueKind.DECIMAL: _decimal,
    ValueKind.FLOAT: _float,
    ValueKind.DOUBLE: _double,
    ValueKind.TEXT: _as_is,
    ValueKind.PADDED_TEXT: _padded,
    ValueKind.BYTES: _bytes,
    ValueKind.DATE: _days,
    ValueKind.TIME: _micros_of_day,
    ValueKind.TIMESTAMP: _micros,
}
