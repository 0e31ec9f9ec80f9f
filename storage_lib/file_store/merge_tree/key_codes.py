"""Order-preserving codes: one integer per key, so that sorting keys of many columns is sorting integers.

A code is a mixed-radix number: an integer column is one digit (its value minus the minimum), a string column one digit
per byte (its value minus the minimum at that position, 0 after the string's end). A position at which all rows agree
takes no room. Digits are added while the code has room; so a smaller code is always a smaller key, and if the room
was sufficient, equal codes are equal keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

WORD = 8
BYTES_MAX = 64
"""Maximum number of bytes of a string that go into a code; the code of a longer string is not exact."""


@dataclass(slots=True)
class _Code:
    """Code under construction; ``room`` is the factor by which it may still grow."""

    values: npt.NDArray[np.int64]
    room: int
    is_exact: bool = field(default=True)

    def append(self, digits: npt.NDArray[np.int64], radix: int) -> None:
        """Append a digit of each row, from 0 to ``radix`` - 1, with reduced precision if the room is too small."""
        if radix > self.room:
            self.cut()
            coarser = -(-radix // max(1, self.room))
            digits, radix = digits // coarser, -(-radix // coarser)
        if radix > 1:
            self.values *= radix
            self.values += digits
            self.room //= radix

    def cut(self) -> None:
        """Note that rows with the same code may differ."""
        self.is_exact = False


def order_codes(frame: pl.DataFrame, bits: int) -> tuple[npt.NDArray[np.int64], bool]:
    """Return a code of at most ``bits`` bits for each row of Int64, String and Binary columns; and if it is exact.

    Columns of other types (wide decimals), and all columns after them, are not part of the code.
    """
    code = _Code(np.zeros(frame.height, dtype=np.int64), 1 << bits)
    for column in frame:
        if not code.is_exact:
            break
        if column.dtype == pl.Int64:
            values = column.to_numpy()
            low, high = int(values.min()), int(values.max())
            if high - low + 1 >= 1 << 63:
                # Even the radix would exceed 64 bits.
                return code.values, False
            code.append(values - low, high - low + 1)
        elif column.dtype in (pl.String, pl.Binary):
            _append_bytes(code, column)
        else:
            return code.values, False
    return code.values, code.is_exact


def _append_bytes(code: _Code, column: pl.Series) -> None:
    text = _Text(column)
    for start in range(0, min(text.length_max, BYTES_MAX), WORD):
        words = text.words(start)
        differing = int(np.bitwise_or.reduce(words ^ words[0]))
        for place in range(start, min(start + WORD, text.length_max)):
            shift = 8 * (start + WORD - 1 - place)
            if text.length_min > place and not (differing >> shift) & 0xFF:
                continue
            digits = ((words >> np.uint64(shift)) & np.uint64(0xFF)).astype(np.int64)
            if text.length_min <= place:
                digits += text.lengths > place
            low, high = int(digits.min()), int(digits.max())
            code.append(digits - low, high - low + 1)
            if not code.is_exact:
                return
    if text.length_max > BYTES_MAX:
        code.cut()


class _Text:
    """Bytes of a string column, eight at a time."""

    def __init__(self, column: pl.Series) -> None:
        array = column.cast(pl.Binary).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_binary())
        _, offset_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        self.lengths = np.diff(offsets)
        self.length_min, self.length_max = int(self.lengths.min()), int(self.lengths.max())
        self._begins = offsets[:-1]
        data = np.frombuffer(data_buffer or b"", dtype=np.uint8)
        self._data_end = len(data)
        # A word can start at any byte, including the last.
        self._words = np.ndarray(
            (self._data_end + 1,), dtype=">u8", buffer=np.concatenate([data, np.zeros(WORD, np.uint8)]), strides=(1,)
        )

    def words(self, start: int) -> npt.NDArray[np.uint64]:
        """Return bytes ``start`` to ``start`` + 7 of each row, the first in the highest bits; zeros after its end."""
        words = self._words[np.minimum(self._begins + start, self._data_end)].astype(np.uint64)
        if self.length_min < start + WORD:
            missing = np.clip(start + WORD - self.lengths, 0, WORD).astype(np.uint64)
            # A shift by a whole word is undefined, so shift in two steps.
            half = missing * np.uint64(4)
            words = (words >> half >> half) << half << half
        return words
