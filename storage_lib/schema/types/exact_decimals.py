"""Convert integers, floats, text and decimals to decimals of exactly the same value.

A float is converted to the shortest decimal that parses to the same float. With scale 2, 3.1 becomes 3.10; 3.555
and 0.1 + 0.2 are refused.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_INTEGER_DIGITS = 20
_PRECISION_MAX = 38
_ROUNDING = 1 + 1e-9


def as_decimals(array: pa.Array, wanted: pa.Decimal128Type) -> pa.Array:
    """Convert ``array`` to ``wanted``. Raises ``pa.ArrowInvalid`` with the first row and value that is not exact."""
    try:
        return _cast(array, wanted)
    except pa.ArrowInvalid as error:
        row = _first_refused(array, wanted)
        message = f"{array[row].as_py()!r} of row {row}: {error}"
        raise pa.ArrowInvalid(message) from error


def _cast(array: pa.Array, wanted: pa.Decimal128Type) -> pa.Array:
    if pa.types.is_integer(array.type):
        digits = _INTEGER_DIGITS + wanted.scale
        # Wide enough for every integer, so that only the final cast can fail.
        wide = pa.decimal128(digits, wanted.scale) if digits <= _PRECISION_MAX else pa.decimal256(digits, wanted.scale)
        return array.cast(wide, safe=True).cast(wanted, safe=True)
    if pa.types.is_floating(array.type):
        # Arrow's own conversions of floats round: 0.7 would be 0.69999999999999995559 with 20 decimal places.
        array = array.cast(pa.string())
    decimals = array.cast(wanted, safe=True)
    _check_size(array, wanted)
    return decimals


def _check_size(array: pa.Array, wanted: pa.Decimal128Type) -> None:
    """Check for overflow, which Arrow misses: it converts 7085.15 to DECIMAL(38, 38) as 0.4711..."""
    numbers = array if pa.types.is_decimal(array.type) else pc.utf8_ltrim(array, characters="+")
    about = numbers.cast(pa.float64(), safe=False)
    limit = 10.0 ** (wanted.precision - wanted.scale) * _ROUNDING
    if pc.any(pc.greater_equal(pc.abs(about), limit)).as_py():
        message = f"Decimal value does not fit in precision {wanted.precision}"
        raise pa.ArrowInvalid(message)


def _first_refused(array: pa.Array, wanted: pa.Decimal128Type) -> int:
    """Find the first refused row by bisection."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _cast(array.slice(low, middle - low), wanted)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
