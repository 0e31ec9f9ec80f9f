"""Convert decimals to columns, exactly: digits that a column lacks are refused, never rounded.

    text                              12.50, 1E+3; NaN and infinities, which PostgreSQL's numeric has, are out of range
    unscaled value (big-endian bytes) with one scale for all, or with a scale per value
    to                                DECIMAL, TINYINT .. BIGINT, STRING (plain digits), FLOAT and DOUBLE (the nearest)

Whole columns are converted at once. A batch in which that fails is converted value by value, to find the values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, InvalidOperation

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.conversion.value_refusals import Converted, Refused, in_places, refused
from storage_lib.schema.encoding.decimal_bytes import decimals_of_bytes
from storage_lib.schema.options.source_options import OutOfRange
from storage_lib.schema.types.data_types import DECIMAL_PRECISION_MAX, DataType, TypeRoot
from storage_lib.schema.types.exact_decimals import as_decimals

_INTEGERS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INTEGER: 32, TypeRoot.BIGINT: 64}
_TEXTS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_FLOATS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_ROOTS = (*_INTEGERS, *_TEXTS, *_FLOATS, TypeRoot.DECIMAL)
_NUMERAL = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?$"
_SCALES_MAX = 64
_WIDE = Context(prec=100_000)
_BAD = (ValueError, InvalidOperation, OverflowError, pa.ArrowException)
_SPECIAL = {
    "nan": float("nan"),
    **dict.fromkeys(("infinity", "positive_infinity"), float("inf")),
    **dict.fromkeys(("-infinity", "negative_infinity"), float("-inf")),
}
_NOT_A_NUMBER = object()


def of_decimal_texts(column: pa.Array, of: DataType, name: str, out_of_range: OutOfRange) -> Converted | None:
    """Convert numerals; None for a type that holds no numbers."""
    if of.root not in _ROOTS:
        return None
    try:
        if pc.all(pc.match_substring_regex(column, _NUMERAL), min_count=0).as_py():
            return Converted(_of_numerals(column, of))
    except _BAD:
        pass  # found value by value
    return _one_by_one([_of_text(each) for each in column.to_pylist()], column, of, name, out_of_range)


def of_unscaled(column: pa.Array, scale: int, of: DataType, name: str, out_of_range: OutOfRange) -> Converted | None:
    """Convert unscaled values (binary) that have one scale; None for a type that holds no numbers."""
    if of.root not in _ROOTS:
        return None
    if 0 <= scale <= DECIMAL_PRECISION_MAX:
        try:
            if scale == of.scale:
                return Converted(decimals_of_bytes(column, of.arrow))
            return Converted(_of_decimals(decimals_of_bytes(column, pa.decimal128(DECIMAL_PRECISION_MAX, scale)), of))
        except _BAD:
            pass  # found value by value
    return _one_by_one([_of_bytes(each, scale) for each in column.to_pylist()], column, of, name, out_of_range)


def of_scaled(
    column: pa.Array, scales: pa.Array, of: DataType, name: str, out_of_range: OutOfRange
) -> Converted | None:
    """Convert unscaled values (binary) with the scale of each (int64), which is null for nulls only.

    None for a type that holds no numbers.
    """
    if of.root not in _ROOTS:
        return None
    distinct = scales.unique().drop_null().to_pylist()
    if len(distinct) > _SCALES_MAX:
        pairs = zip(column.to_pylist(), scales.to_pylist(), strict=True)
        return _one_by_one([_of_bytes(value, scale) for value, scale in pairs], column, of, name, out_of_range)
    places = pc.fill_null(pc.index_in(scales, pa.array(distinct, scales.type)), 0).to_numpy()
    parts: list[pa.Array] = [pa.array([], of.arrow)]
    refusals: list[Refused] = []
    for number, scale in enumerate(distinct):
        rows = np.flatnonzero(places == number)
        found = of_unscaled(column.take(pa.array(rows)), scale, of, name, out_of_range)
        if found is None:
            return None
        parts.append(found.array)
        refusals += in_places(found.refusals, rows, len(column))
    if not distinct:
        return Converted(pa.nulls(len(column), of.arrow))
    order = np.argsort(np.argsort(places, kind="stable"), kind="stable")
    return Converted(pa.concat_arrays(parts).take(pa.array(order)), tuple(refusals))


def _of_numerals(column: pa.Array, of: DataType) -> pa.Array:
    if of.root in _FLOATS:
        return _finite(column.cast(of.arrow))
    if of.root in _INTEGERS:
        return as_decimals(column, pa.decimal128(DECIMAL_PRECISION_MAX, 0)).cast(of.arrow)
    return column if of.root in _TEXTS else as_decimals(column, of.arrow)


def _of_decimals(column: pa.Array, of: DataType) -> pa.Array:
    if of.root is TypeRoot.DECIMAL:
        return as_decimals(column, of.arrow)
    text = pl.Series(pl.from_arrow(column)).cast(pl.String).to_arrow().cast(pa.string())
    return text if of.root in _TEXTS else _of_numerals(text, of)


def _finite(floats: pa.Array) -> pa.Array:
    if not pc.all(pc.is_finite(floats), min_count=0).as_py():
        message = "a number that is too large"
        raise ValueError(message)
    return floats


def _of_text(text: str | None) -> object:
    if text is None:
        return None
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    return Decimal(text) if re.match(_NUMERAL, text, re.ASCII) else _NOT_A_NUMBER


def _of_bytes(unscaled: bytes | None, scale: int | None) -> object:
    if unscaled is None:
        return None
    if scale is None or not unscaled:
        return _NOT_A_NUMBER
    return Decimal(int.from_bytes(unscaled, signed=True)).scaleb(-scale, _WIDE)


def _one_by_one(
    numbers: Sequence[object], column: pa.Array, of: DataType, name: str, out_of_range: OutOfRange
) -> Converted:
    is_allowed = out_of_range is OutOfRange.NULL or of.root in _FLOATS
    found = [_exact(each, of) for each in numbers]
    is_far = _mask(numbers, lambda each: isinstance(each, float) and not is_allowed)
    is_no_number = _mask(numbers, lambda each: each is _NOT_A_NUMBER)
    is_lost = np.fromiter(
        (isinstance(each, Decimal) and it is None for each, it in zip(numbers, found, strict=True)), bool, len(numbers)
    )
    kind = of.with_nullable(nullable=True)
    # An unscaled value is shown as the number that it stands for.
    is_text = pa.types.is_string(column.type)
    shown = column if is_text else pa.array([str(each) if isinstance(each, Decimal) else None for each in numbers])
    return Converted(
        pa.array(found, of.arrow),
        (
            *refused(column, is_far, name, f"is not a number that a {kind} holds; source.out-of-range=null reads null"),
            *refused(column, is_no_number, name, "is not a decimal number"),
            *refused(shown, is_lost, name, f"does not fit {kind} exactly; widen the column"),
        ),
    )


def _exact(number: object, of: DataType) -> object:  # noqa: PLR0911  one per kind of type
    """Return the value for a column, or None if there is no number or the column can't hold it."""
    if isinstance(number, float) and of.root in _FLOATS:
        return number
    if not isinstance(number, Decimal):
        return None
    if of.root in _TEXTS:
        return format(number, "f")
    if of.root in _FLOATS:
        return _nearest(number, of)
    scale = (of.scale or 0) if of.root is TypeRoot.DECIMAL else 0
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or (len(digits) + exponent > DECIMAL_PRECISION_MAX and any(digits)):
        return None
    scaled = number.scaleb(scale, _WIDE)
    if scaled != scaled.to_integral_value(context=_WIDE):
        return None
    if of.root is TypeRoot.DECIMAL:
        is_fitting = scaled.copy_abs() < 10 ** (of.precision or 0)
        return number.quantize(Decimal(1).scaleb(-scale), context=_WIDE) if is_fitting else None
    half = 1 << (_INTEGERS[of.root] - 1)
    return int(number) if -half <= number < half else None


def _nearest(number: Decimal, of: DataType) -> float | None:
    value = float(number)
    with np.errstate(over="ignore"):
        return value if np.isfinite(of.arrow.to_pandas_dtype()(value)) else None


def _mask(numbers: Sequence[object], holds: Callable[[object], bool]) -> np.ndarray:
    return np.fromiter((holds(each) for each in numbers), bool, len(numbers))
