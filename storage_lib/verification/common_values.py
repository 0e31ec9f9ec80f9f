"""Convert a column to the form in which two sides are compared (``ValueKind``)."""

from __future__ import annotations

import json

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from storage_lib.schema.types.nested_arrays import as_list, list_parts, map_parts
from storage_lib.verification.column_kind import ArrayKind, ColumnKind, MapKind, StructKind, refused_column
from storage_lib.verification.value_kind import ValueKind

_TRAILING_ZEROS = r"^([+-]?\d+\.\d*?)0*$"
_PLAIN_NUMBER = r"^[+-]?\d+(\.\d*)?$"
_MICROS = pa.timestamp("us")


def common_values(array: pa.Array, form: ColumnKind, name: str, of: str) -> pl.Series:
    """Return the values in the common form. ``name`` of ``of`` is the column, for the error of a value without one."""
    if at.is_dictionary(array.type):
        array = array.dictionary_decode()
    if at.is_null(array.type):
        return pl.Series(name, [None] * len(array), dtype=form.polars)
    if not isinstance(form, ValueKind):
        text = _nested_text(array, form, name, of)
        is_null = pl.Series(array.is_null())
        return pl.select(pl.when(~is_null).then(text)).to_series().rename(name)
    try:
        return _CONVERSIONS[form](array).cast(form.polars).rename(name)
    except (pa.ArrowInvalid, pl.exceptions.InvalidOperationError) as error:
        raise refused_column(name, of, f"a value has no form as {form.value}: {error}") from error


def _nested_text(array: pa.Array, form: ArrayKind | MapKind | StructKind, name: str, of: str) -> pl.Series:
    """Return the text of each value; that of a null does not count."""
    if isinstance(form, StructKind):
        parts = [_part_text(pc.struct_field(array, field), kind, name, of) for field, kind in form.fields]
        labels = [json.dumps(field, ensure_ascii=False) for field, _ in form.fields]
        frame = pl.DataFrame({f"{number}": part for number, part in enumerate(parts)})
        shown = [
            part
            for number, label in enumerate(labels)
            for part in (pl.lit(f"{',' if number else ''}{label}:"), pl.col(f"{number}"))
        ]
        return frame.select(pl.concat_str([pl.lit("{"), *shown, pl.lit("}")])).to_series()
    if isinstance(form, MapKind):
        entries = map_parts(array)
        offsets, elements = entries.offsets, pa.StructArray.from_arrays([entries.keys, entries.values], ["key", "item"])
        element: ColumnKind = StructKind((("item", form.item), ("key", form.key)))
    else:
        parts_of_list = list_parts(as_list(array))
        offsets, elements, element = parts_of_list.offsets, parts_of_list.values, form.element
    texts = _part_text(elements, element, name, of).to_arrow().cast(pa.large_string())
    lists = pl.Series(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts))
    ordered = lists.list.sort() if isinstance(form, MapKind) else lists
    return _enclosed(ordered.list.join(","), "[", "]")


def _part_text(array: pa.Array, form: ColumnKind, name: str, of: str) -> pl.Series:
    """Return the text of parts, as in JSON: text in quotes, null without."""
    values = common_values(array, form, name, of)
    if isinstance(form, ValueKind):
        if form is ValueKind.BYTES:
            values = values.bin.encode("hex")
        if values.dtype == pl.String:
            escaped = values.str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
            values = _enclosed(escaped, '"', '"')
    return values.cast(pl.String).fill_null("null")


def _enclosed(texts: pl.Series, start: str, end: str) -> pl.Series:
    frame = pl.DataFrame({"text": texts})
    return frame.select(pl.concat_str([pl.lit(start), pl.col("text"), pl.lit(end)])).to_series()


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
