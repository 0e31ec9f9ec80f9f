"""Order-preserving codes: one integer per key, so that sorting keys of many columns is sorting integers.

A code is a number of mixed radix: an integer column is one digit (its value above the least), a string column one digit
per byte (its value above the least at that place, 0 where the string has ended). A place at which all rows agree costs
nothing. Digits are taken as long as the code has room; so a smaller code is always a smaller key, and if the room
sufficed, equal codes are equal keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

WORD = 8
BYTES_MAX = 64
"""Places of a string that are looked at before giving up on an exact code."""


@dataclass(slots=True)
class _Code:
    """The number so far; ``room`` is by how much it may still grow."""

    values: npt.NDArray[np.int64]
    room: int
    is_exact: bool = field(default=True)

    def append(self, digits: npt.NDArray[np.int64], radix: int) -> None:
        """The next digit of each row, from 0 to ``radix`` - 1; as much of it as there is room for."""
        if radix > self.room:
            self.cut()
            coarser = -(-radix // max(1, self.room))
            digits, radix = digits // coarser, -(-radix // coarser)
        if radix > 1:
            self.values *= radix
            self.values += digits
            self.room //= radix

    def cut(self) -> None:
        """Note that rows with the same number may differ."""
        self.is_exact = False


def order_codes(frame: pl.DataFrame, bits: int) -> tuple[npt.NDArray[np.int64], bool]:
    """A code of at most ``bits`` bits for each row of key columns (Int64, String, Binary), and whether it is exact.

    Of other columns (wide decimals), and behind them, nothing goes into the code.
    """
    code = _Code(np.zeros(frame.height, dtype=np.int64), 1 << bits)
    for column in frame:
        if not code.is_exact:
            break
        if column.dtype == pl.Int64:
            values = column.to_numpy()
            low, high = int(values.min()), int(values.max())
            if high - low + 1 >= 1 << 63:
                # Not even the radix would be a number of 64 bits.
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
    """The bytes of a string column, eight at a time."""

    def __init__(self, column: pl.Series) -> None:
        array = column.cast(pl.Binary).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_binary())
        _, offset_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offset_buffer, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        self.lengths = np.diff(offsets)
        self.length_min, self.length_max = int(self.lengths.min()), int(self.lengths.max())
        self._begins = offsets[:-1]
        data = np.frombuffer(data_buffer or b"", dtype=np.uint8)
        self._data_end = len(data)
        # A word may be read at any place, up to the very end.
        self._words = np.ndarray(
            (self._data_end + 1,), dtype=">u8", buffer=np.concatenate([data, np.zeros(WORD, np.uint8)]), strides=(1,)
        )

    def words(self, start: int) -> npt.NDArray[np.uint64]:
        """Bytes ``start`` to ``start`` + 7 of each row, the first one highest; zeros where the row has ended."""
        words = self._words[np.minimum(self._begins + start, self._data_end)].astype(np.uint64)
        if self.length_min < start + WORD:
            missing = np.clip(start + WORD - self.lengths, 0, WORD).astype(np.uint64)
            # A shift by a whole word is undefined, so it is done in two steps.
            half = missing * np.uint64(4)
            words = (words >> half >> half) << half << half
        return words
