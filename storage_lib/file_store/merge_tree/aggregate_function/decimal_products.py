"""Products and quotients of decimals by group, each rounded half up to the column's scale, as Paimon's Java core does.

Source: ``FieldProductAgg`` and ``Decimal.fromBigDecimal`` of apache/paimon. Rounding makes a product of decimals depend
on the order: a merge multiplies the oldest first, but starts from the rounded result of an earlier merge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.encoding.decimal_bytes import big_endian_words

_WORD_BITS = 64
_WORD = (1 << _WORD_BITS) - 1

Integers = npt.NDArray[np.object_]
"""Python integers, which have no limit; NumPy loops over them."""


def decimal_products(values: pa.Array, starts: npt.NDArray[np.int64]) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the product of each group, in the type of ``values``, and which of them overflow (these are garbage).

    ``values`` (decimal128) have no nulls.
    """
    unit = 10**values.type.scale

    def multiply(product: int, value: int) -> int:
        return _rounded(product * value, unit)

    unscaled = _unscaled(values)
    if unit == 1:
        products = np.multiply.reduceat(unscaled, starts)
    else:
        products = np.frompyfunc(multiply, 2, 1).reduceat(unscaled, starts)
    return _decimals(products, values.type)


def decimal_quotients(dividends: pa.Array, divisors: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Divide ``dividends`` by ``divisors``, and return which quotients overflow.

    A null divisor counts as 1; a null dividend stays null. Raises ``ZeroDivisionError``.
    """
    kind = dividends.type
    unit = 10**kind.scale
    is_there = dividends.is_valid().to_numpy(zero_copy_only=False)
    is_divided = is_there & divisors.is_valid().to_numpy(zero_copy_only=False)
    quotients = np.where(is_there, _unscaled(dividends), 0)

    def divide(dividend: int, divisor: int) -> int:
        return _rounded(dividend * unit, divisor)

    quotients[is_divided] = np.frompyfunc(divide, 2, 1)(quotients[is_divided], _unscaled(divisors)[is_divided])
    decimals, overflows = _decimals(quotients, kind)
    place = pa.array(np.arange(len(decimals)), mask=~is_there)
    return decimals.take(place), overflows


def _rounded(dividend: int, divisor: int) -> int:
    """Return the quotient, with halves rounded away from zero."""
    quotient, rest = divmod(abs(dividend), abs(divisor))
    quotient += 2 * rest >= abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _unscaled(values: pa.Array) -> Integers:
    words = np.ascontiguousarray(big_endian_words(values)).view(">u8")
    high, low = words[:, 0].astype(np.uint64).view(np.int64), words[:, 1].astype(np.uint64)
    integers: Integers = high.astype(object) * (1 << _WORD_BITS) + low.astype(object)
    return integers


def _decimals(unscaled: Integers, kind: pa.Decimal128Type) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    bound = 10**kind.precision
    overflows = ((unscaled >= bound) | (unscaled <= -bound)).astype(np.bool_)
    fitting = np.where(overflows, 0, unscaled)
    low = (fitting & _WORD).astype(np.uint64)
    high = (fitting >> _WORD_BITS).astype(np.int64)
    buffer = pa.py_buffer(np.column_stack([low.view(np.int64), high]).tobytes())
    return pa.Array.from_buffers(kind, len(unscaled), [None, buffer]), overflows
