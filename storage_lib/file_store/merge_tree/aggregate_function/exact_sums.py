"""Exact sums of integers and decimals by group, with detection of overflows.

A number is split into words of 32 bits, which are summed separately in 64 bits: that can't overflow for
less than 2^31 rows. Carries are propagated at the end, and an excess in the highest word is an overflow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

WORD_BITS = 32
WORD = (1 << WORD_BITS) - 1
SIGN = 1 << (WORD_BITS - 1)
WORDS_OF_DECIMAL = 4


def exact_sums(
    values: pa.Array, starts: npt.NDArray[np.int64], subtracted: npt.NDArray[np.bool_] | None
) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Return the sum of each group, in the type of ``values``, and which of them overflow (these are garbage).

    ``values`` (integers of up to 64 bits, or decimal128) have no nulls; the ``subtracted`` ones are negated.
    """
    words = _words(values)
    if subtracted is not None:
        sign = np.where(subtracted, -1, 1)
        words = [word * sign for word in words]
    sums = [np.add.reduceat(word, starts) for word in words]
    for place in range(len(sums) - 1):
        sums[place + 1] += sums[place] >> WORD_BITS
        sums[place] &= WORD
    overflows = (sums[-1] < -SIGN) | (sums[-1] >= SIGN)
    halves = [(high << WORD_BITS) | low for low, high in zip(sums[::2], sums[1::2], strict=True)]
    if pa.types.is_decimal(values.type):
        overflows |= _is_outside(halves[1], halves[0].view(np.uint64), 10**values.type.precision)
        buffer = pa.py_buffer(np.column_stack(halves).tobytes())
        return pa.Array.from_buffers(values.type, len(starts), [None, buffer]), overflows
    limits = np.iinfo(values.type.to_pandas_dtype())
    overflows |= (halves[0] < limits.min) | (halves[0] > limits.max)
    return pa.array(halves[0].astype(limits.dtype), values.type), overflows


def _words(values: pa.Array) -> list[npt.NDArray[np.int64]]:
    """Return the words of 32 bits, lowest first; the highest has the sign."""
    if pa.types.is_decimal(values.type):
        stored = np.frombuffer(values.buffers()[1], dtype="<u4").reshape(-1, WORDS_OF_DECIMAL)
        stored = stored[values.offset : values.offset + len(values)]
        words = [stored[:, place].astype(np.int64) for place in range(WORDS_OF_DECIMAL)]
    else:
        integers = values.to_numpy().astype(np.int64)
        words = [integers & WORD, (integers >> WORD_BITS) & WORD]
    words[-1] -= (words[-1] >= SIGN).astype(np.int64) << WORD_BITS
    return words


def _is_outside(high: npt.NDArray[np.int64], low: npt.NDArray[np.uint64], bound: int) -> npt.NDArray[np.bool_]:
    """Return whether numbers of 128 bits are at or beyond plus or minus ``bound``."""
    bound_high, bound_low = np.int64(bound >> 64), np.uint64(bound & ((1 << 64) - 1))
    floor_high, floor_low = np.int64(-bound >> 64), np.uint64(-bound & ((1 << 64) - 1))
    too_great = (high > bound_high) | ((high == bound_high) & (low >= bound_low))
    too_small = (high < floor_high) | ((high == floor_high) & (low <= floor_low))
    outside: npt.NDArray[np.bool_] = too_great | too_small
    return outside
