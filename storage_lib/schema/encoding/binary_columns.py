"""Encode whole columns as BinaryRows: the words of all rows are NumPy columns, from which rows or hashes are built.

The layout is that of ``binary_row`` (docs/format.md, 1.9). A row consists of 8-byte words, each a NumPy column:

    null words | one slot per field | variable part: per field none, fixed words, or strings of ragged length
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.types.data_types import DataType, TypeRoot

Words: TypeAlias = npt.NDArray[np.uint64]
Counts: TypeAlias = npt.NDArray[np.int64]

_INLINE_BYTES_MAX = 7
_COMPACT_DIGITS_MAX = 18
_MILLIS_DIGITS = 3
_HEADER_BITS = 8
_PER_MILLI = {"us": 1_000, "ns": 1_000_000}
_MASKS = np.array([(1 << (8 * length)) - 1 for length in range(9)], dtype=np.uint64)
_INLINE_FLAG = np.uint64(0x80)
_FEW_ROWS = 32
_BYTES = (TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY)


@dataclass(frozen=True, slots=True)
class RaggedWords:
    """Strings of different lengths, zero-padded to words; inline strings and nulls have no words."""

    counts: Counts
    _starts: Counts
    _lengths: Counts
    _bytes: npt.NDArray[np.uint8]

    def word(self, number: int, rows: npt.NDArray[np.intp] | slice) -> Words:
        """Return word ``number`` of the given rows, which must have that many."""
        anywhere = _overlapping_words(self._bytes)
        word: Words = anywhere[self._starts[rows] + 8 * number]
        left = self._lengths[rows] - 8 * number
        return word if len(left) == 0 or left.min() >= 8 else word & _MASKS[np.minimum(left, 8)]

    def of_row(self, row: int) -> Words:
        """Return all words of one row."""
        padded = np.zeros(int(self.counts[row]), dtype=np.uint64)
        length, start = int(self._lengths[row]), int(self._starts[row])
        padded.view(np.uint8)[:length] = self._bytes[start : start + length]
        return padded


@dataclass(frozen=True, slots=True)
class RowWords:
    """Words of ``row_count`` rows. A word that is None is zero in every row."""

    row_count: int
    null_words: list[Words | None]
    slots: list[Words]
    variable: list[list[Words] | RaggedWords]

    @property
    def byte_lengths(self) -> Counts | int:
        """Length of each row without its arity; one number if all are the same."""
        fixed = 8 * (len(self.null_words) + len(self.slots))
        fixed += sum(8 * len(part) for part in self.variable if isinstance(part, list))
        ragged = [part.counts for part in self.variable if isinstance(part, RaggedWords)]
        return fixed + 8 * sum(ragged[1:], start=ragged[0]) if ragged else fixed


def row_words(columns: Sequence[pa.Array], types: Sequence[DataType]) -> RowWords:
    """Split columns into words. Their Arrow types must correspond to ``types``, their lengths must be equal."""
    row_count = len(columns[0]) if columns else 0
    null_word_count = (len(types) + 63 + _HEADER_BITS) // 64
    null_words: list[Words | None] = [None] * null_word_count
    slots: list[Words] = []
    variable: list[list[Words] | RaggedWords] = []
    # Offset of the next variable item: one number until strings make it differ between rows.
    offset: Words | np.uint64 = np.uint64(8 * (null_word_count + len(types)))
    for index, (column, data_type) in enumerate(zip(columns, types, strict=True)):
        nulls = _null_mask(column)
        if nulls is not None:
            bit = index + _HEADER_BITS
            flags = nulls.astype(np.uint64) << np.uint64(bit % 64)
            before = null_words[bit // 64]
            null_words[bit // 64] = flags if before is None else before | flags
        if data_type.root in _BYTES:
            slot, ragged = _strings(column, nulls, offset)
            if ragged is not None:
                variable.append(ragged)
                offset = offset + ragged.counts.astype(np.uint64) * np.uint64(8)
        else:
            slot, extra = _numbers(column, data_type, nulls)
            if extra:
                slot = slot | (offset << np.uint64(32))
                variable.append(extra)
                offset = offset + np.uint64(8 * len(extra))
        slots.append(slot)
    return RowWords(row_count, null_words, slots, variable)


def encode_rows(columns: Sequence[pa.Array], types: Sequence[DataType]) -> pa.BinaryArray:
    """Serialize all rows as BinaryRows, arity first, with the same result as ``encode_row`` for each row.

    ``columns`` are one or more Arrow arrays of equal length, whose types correspond to ``types``.
    """
    words = row_words(columns, types)
    lengths = words.byte_lengths
    arity = np.frombuffer(len(types).to_bytes(4, "big"), dtype=np.uint32)[0]
    starts = np.zeros(words.row_count + 1, dtype=np.int64)
    np.cumsum(np.broadcast_to(np.asarray(lengths), words.row_count) + 4, out=starts[1:])
    out = np.empty(int(starts[-1]) // 4, dtype=np.uint32)
    is_arity = np.zeros(len(out), dtype=bool)
    is_arity[starts[:-1] // 4] = True
    out[is_arity] = arity
    out[~is_arity] = _assembled(words, lengths).view(np.uint32)
    offsets = pa.py_buffer(starts.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), words.row_count, [None, offsets, pa.py_buffer(out)])


def _assembled(words: RowWords, lengths: Counts | int) -> Words:
    """Return the concatenated rows, without arities."""
    counts = np.broadcast_to(np.asarray(lengths) // 8, words.row_count)
    at = np.cumsum(counts) - counts
    rows = np.zeros(int(counts.sum()), dtype=np.uint64)
    fixed: list[Words | None] = [*words.null_words, *words.slots]
    for number, word in enumerate(fixed):
        if word is not None:
            rows[at + number] = word
    at = at + len(fixed)
    for part in words.variable:
        if isinstance(part, list):
            for number, word in enumerate(part):
                rows[at + number] = word
            at = at + len(part)
        else:
            _put_ragged(rows, at, part)
            at = at + part.counts
    return rows


def _put_ragged(rows: Words, at: Counts, part: RaggedWords) -> None:
    active = np.flatnonzero(part.counts > 0)
    number = 0
    while len(active) > _FEW_ROWS:
        rows[at[active] + number] = part.word(number, active)
        number += 1
        active = active[part.counts[active] > number]
    for row in active:  # a few long strings are copied as a whole
        rows[at[row] : at[row] + part.counts[row]] = part.of_row(int(row))


def _null_mask(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    if column.null_count == 0:
        return None
    mask: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return mask


def _strings(
    column: pa.Array, nulls: npt.NDArray[np.bool_] | None, offset: Words | np.uint64
) -> tuple[Words, RaggedWords | None]:
    """Return the slots of a string or binary column, and the strings that are too long for their slot."""
    _, offsets_buffer, data_buffer = column.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32, count=len(column) + 1, offset=4 * column.offset)
    starts = offsets[:-1].astype(np.int64)
    lengths = np.diff(offsets).astype(np.int64)
    if nulls is not None:
        lengths[nulls] = 0
    # The referenced bytes, plus 8, so that a whole word can be read at any position.
    low, high = int(offsets[0]), int(offsets[-1])
    data = np.zeros(high - low + 8, dtype=np.uint8)
    if data_buffer is not None:
        data[: high - low] = np.frombuffer(data_buffer, dtype=np.uint8, count=high - low, offset=low)
    starts -= low
    head = _overlapping_words(data)[np.minimum(starts, high - low)]
    size = lengths.astype(np.uint64)
    inline = (head & _MASKS[np.minimum(lengths, 8)]) | ((size | _INLINE_FLAG) << np.uint64(56))
    is_long = lengths > _INLINE_BYTES_MAX
    slots = np.where(is_long, (offset << np.uint64(32)) | size, inline) if is_long.any() else inline
    if nulls is not None:
        slots[nulls] = 0
    if not is_long.any():
        return slots, None
    return slots, RaggedWords(np.where(is_long, (lengths + 7) // 8, 0), starts, lengths, data)


def _overlapping_words(data: npt.NDArray[np.uint8]) -> Words:
    """Return the word that begins at each byte."""
    return np.ndarray((len(data) - 7,), dtype="<u8", buffer=data, strides=(1,))


def _numbers(column: pa.Array, data_type: DataType, nulls: npt.NDArray[np.bool_] | None) -> tuple[Words, list[Words]]:
    """Return the slots of any other column, and the words of its values in the variable part."""
    precision = data_type.precision or 0
    extra: list[Words] = []
    if data_type.root is TypeRoot.BOOLEAN:
        slots = column.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint64)
    elif data_type.root is TypeRoot.DECIMAL:
        digits = _values(column, np.dtype("<u8"), 2).view(np.uint64).reshape(-1, 2)
        if precision > _COMPACT_DIGITS_MAX:
            slots, extra = _wide_decimals(digits)
        else:
            slots = digits[:, 0].copy()
    elif data_type.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ) and precision > _MILLIS_DIGITS:
        per_milli = _PER_MILLI[column.type.unit]
        millis, rest = np.divmod(_values(column, np.dtype("<i8")), per_milli)
        slots = (rest * (1_000_000 // per_milli)).view(np.uint64)
        extra = [millis.view(np.uint64)]
    else:
        width = column.type.bit_width // 8
        slots = _values(column, np.dtype(f"<u{width}")).astype(np.uint64)
    if nulls is not None:
        for words in (slots, *extra):
            words[nulls] = 0
    return slots, extra


def _values(column: pa.Array, dtype: np.dtype[np.generic], per_value: int = 1) -> npt.NDArray[np.generic]:
    """Return the value buffer; its content is undefined for nulls."""
    data = column.buffers()[1]
    count = len(column) * per_value
    start = column.offset * per_value * dtype.itemsize
    return np.frombuffer(data, dtype=dtype, count=count, offset=start) if count else np.empty(0, dtype)


def _wide_decimals(digits: npt.NDArray[np.uint64]) -> tuple[Words, list[Words]]:
    """Return lengths and words of the shortest big-endian two's complement, left-aligned in 16 bytes."""
    big = np.ascontiguousarray(digits).view(np.uint8).reshape(-1, 16)[:, ::-1]
    sign = np.where(big[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    differs = big != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    # The first byte kept has to show the sign; otherwise the byte before it is kept as well.
    shows_sign = (np.take_along_axis(big, first[:, None], axis=1) ^ sign)[:, 0] < 0x80
    first = np.where(shows_sign | (first == 0), first, first - 1)
    index = first[:, None] + np.arange(16)
    shifted = np.where(index < 16, np.take_along_axis(big, np.minimum(index, 15), axis=1), 0)
    words = np.ascontiguousarray(shifted.astype(np.uint8)).view(np.uint64).reshape(-1, 2)
    return (16 - first).astype(np.uint64), [words[:, 0].copy(), words[:, 1].copy()]
