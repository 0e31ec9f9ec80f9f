"""Convert whole numbers, floats and booleans to columns; a number that a column can't hold exactly is refused.

whole number   TINYINT .. BIGINT, DECIMAL, FLOAT, DOUBLE, BOOLEAN (0 and 1), STRING (its digits)
float          FLOAT, DOUBLE: the nearest, but no infinity in place of a number; TINYINT .. BIGINT, DECIMAL
boolean        BOOLEAN, STRING (true and false)
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.conversion.decimal_values import of_decimal_texts
from storage_lib.log_store.conversion.value_refusals import Converted, Refused, refused, valid, without
from storage_lib.schema.options.source_options import OutOfRange
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.exact_decimals import as_decimals

INTEGER_ROOTS = (TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT)
FLOAT_ROOTS = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
TEXT_ROOTS = (TypeRoot.CHAR, TypeRoot.VARCHAR)
_LONG_DIGITS = 18


def of_booleans(column: pa.Array, of: DataType) -> Converted | None:
    """Convert truth values; None for a type that holds none."""
    if of.root is TypeRoot.BOOLEAN or of.root in TEXT_ROOTS:
        return Converted(column.cast(of.arrow))
    return None


def of_integers(column: pa.Array, of: DataType, name: str) -> Converted | None:
    """Convert whole numbers (int64); None for a type that holds no numbers."""
    if of.root in TEXT_ROOTS:
        return Converted(column.cast(of.arrow))
    numbers = pc.fill_null(column, 0).to_numpy()
    if of.root is TypeRoot.BOOLEAN:
        return _fitted(column, (numbers == 0) | (numbers == 1), of, name)
    if of.root in INTEGER_ROOTS:
        limits = np.iinfo(of.arrow.to_pandas_dtype())
        return _fitted(column, (numbers >= limits.min) & (numbers <= limits.max), of, name)
    if of.root in FLOAT_ROOTS:
        floats = numbers.astype(of.arrow.to_pandas_dtype())
        with np.errstate(invalid="ignore"):
            is_exact = (floats.astype(np.int64) == numbers) & (numbers != np.iinfo(np.int64).max)
        mask = ~is_exact & valid(column)
        return Converted(pa.array(floats, mask=mask | ~valid(column)), _refusals(column, mask, of, name))
    if of.root is TypeRoot.DECIMAL:
        digits = (of.precision or 0) - (of.scale or 0)
        is_fitting = np.ones(len(column), bool) if digits > _LONG_DIGITS else np.abs(numbers) < 10**digits
        return _fitted(column, is_fitting & (numbers != np.iinfo(np.int64).min) | (digits > _LONG_DIGITS), of, name)
    return None


def of_floats(column: pa.Array, bits: int, of: DataType, name: str, out_of_range: OutOfRange) -> Converted | None:
    """Convert floats, which were written with ``bits`` bits; None for a type that holds no numbers.

    A float becomes the shortest decimal that stands for it.
    """
    written = column.cast(pa.float32() if bits == pa.float32().bit_width else pa.float64())
    if of.root in FLOAT_ROOTS:
        floats = written.cast(of.arrow)
        is_lost = pc.and_(pc.is_finite(column), pc.invert(pc.is_finite(floats)))
        mask = pc.fill_null(is_lost, fill_value=False).to_numpy(zero_copy_only=False)
        return Converted(
            without(floats, mask), refused(column, mask, name, f"is too large for {of.with_nullable(nullable=True)}")
        )
    if of.root in INTEGER_ROOTS:
        numbers = pc.fill_null(column, 0.0).to_numpy()
        is_whole = np.isfinite(numbers) & (np.abs(numbers) <= 2.0**53)
        whole = np.where(is_whole, numbers, 0.0)
        is_whole &= whole == np.floor(whole)
        limits = np.iinfo(of.arrow.to_pandas_dtype())
        is_fitting = is_whole & (whole >= limits.min) & (whole <= limits.max)
        array = without(pa.array(np.where(is_fitting, whole, 0).astype(np.int64)), ~is_fitting | ~valid(column))
        return Converted(array.cast(of.arrow), _refusals(column, ~is_fitting & valid(column), of, name))
    if of.root is TypeRoot.DECIMAL:
        return of_decimal_texts(written.cast(pa.string()), of, name, out_of_range)
    return None


def _fitted(column: pa.Array, is_fitting: np.ndarray, of: DataType, name: str) -> Converted:
    mask = ~is_fitting & valid(column)
    fitting = without(column, mask)
    array = as_decimals(fitting, of.arrow) if of.root is TypeRoot.DECIMAL else fitting.cast(of.arrow)
    return Converted(array, _refusals(column, mask, of, name))


def _refusals(column: pa.Array, mask: np.ndarray, of: DataType, name: str) -> tuple[Refused, ...]:
    return refused(column, mask, name, f"does not fit {of.with_nullable(nullable=True)}; widen the column")
