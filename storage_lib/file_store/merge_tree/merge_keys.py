"""Keys of a batch in a form that compiled code can sort, search and match.

One integer-like key column (the common case) is a NumPy array; any other key is a Polars frame.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.file_store.data_file.comparable_key import ComparableKey, comparable_integers, is_integer_like
from storage_lib.file_store.merge_tree.key_codes import order_codes
from storage_lib.schema.types.data_types import DataType

Indices: TypeAlias = npt.NDArray[np.int64]
"""Positions in a batch."""

POSITION = "position"
PACKED_BITS = 63
TIED_ROWS_MAX = 1 / 2


class MergeKeys(Protocol):
    """Keys of some rows, in row order."""

    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""

    def slice(self, start: int, stop: int) -> Self:
        """Return the keys of a range of rows."""

    def take(self, rows: Indices) -> Self:
        """Return the keys of those rows, in that order."""

    def key_at(self, row: int) -> ComparableKey:
        """Return one key, comparable with others of the same table."""

    def rows_up_to(self, key: ComparableKey) -> int:
        """REQUIRES sorted keys. Return the number of rows at or before ``key``."""

    def rows_before(self, key: ComparableKey) -> int:
        """REQUIRES sorted keys. Return the number of rows before ``key``, which may be a key's first columns."""

    def newest(self, *, ordered: bool) -> Indices:
        """Return the last row of each key; sorted by key if ``ordered``, else in any order."""

    def grouped(self) -> tuple[Indices, Indices]:
        """Return the stable order that sorts the rows by key, and the position in it where each key begins."""

    def matches(self, other: Self) -> tuple[Indices, Indices]:
        """REQUIRES self sorted and unique. Return rows of self, and the rows of other with the same keys."""

    def interleave(self, other: Self) -> Indices:
        """REQUIRES both sorted. Return the order that sorts self's rows, then other's; self first among equals."""

    def concat(self, others: Sequence[Self]) -> Self:
        """Return these keys followed by those of the others."""


def merge_keys(columns: Sequence[pa.Array], types: Sequence[DataType]) -> MergeKeys:
    """Return the keys in these columns, which must not have nulls."""
    if len(columns) == 1 and is_integer_like(types[0]):
        return IntegerKeys(comparable_integers(columns[0]))
    frame = {
        f"key_{index}": comparable_integers(column) if is_integer_like(type_) else pl.from_arrow(column)
        for index, (column, type_) in enumerate(zip(columns, types, strict=True))
    }
    return FrameKeys(pl.DataFrame(frame))


def as_integers(parts: Sequence[MergeKeys]) -> list[MergeKeys]:
    """Convert keys to integers that are comparable among these parts, if 63 bits suffice; else return ``parts``."""
    frames = [part.frame for part in parts if isinstance(part, FrameKeys)]
    if len(frames) < len(parts) or not any(frame.height for frame in frames):
        return list(parts)
    codes, is_exact = order_codes(pl.concat(frames, rechunk=True), PACKED_BITS)
    if not is_exact:
        return list(parts)
    bounds = np.cumsum([0, *(frame.height for frame in frames)])
    return [IntegerKeys(codes[start:stop]) for start, stop in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class IntegerKeys:
    """Keys of one integer-like column."""

    values: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Eight bytes for each row."""
        return self.values.nbytes

    def slice(self, start: int, stop: int) -> IntegerKeys:
        """Return a view."""
        return IntegerKeys(self.values[start:stop])

    def take(self, rows: Indices) -> IntegerKeys:
        """Return a copy."""
        return IntegerKeys(self.values[rows])

    def key_at(self, row: int) -> ComparableKey:
        """Return the key as a tuple of one integer."""
        return (int(self.values[row]),)

    def rows_up_to(self, key: ComparableKey) -> int:
        """Find the number with binary search."""
        return int(np.searchsorted(self.values, np.int64(cast("int", key[0])), side="right"))

    def rows_before(self, key: ComparableKey) -> int:
        """Find the number with binary search."""
        return int(np.searchsorted(self.values, np.int64(cast("int", key[0])), side="left"))

    def newest(self, *, ordered: bool) -> Indices:  # noqa: ARG002  sorting is the fastest way either way
        """Sort words of key and position, with the processor's vectorised sort.

        Nine times faster than a stable argsort (750,000 keys: 7.5 ms), which is used if the keys span too wide a range.
        """
        values, count = self.values, len(self.values)
        if count == 0 or bool(np.all(values[1:] > values[:-1])):
            return np.arange(count, dtype=np.int64)
        order, in_order = self._sorted()
        is_last = np.empty(count, dtype=np.bool_)
        np.not_equal(in_order[1:], in_order[:-1], out=is_last[:-1])
        is_last[-1] = True
        return order[is_last]

    def grouped(self) -> tuple[Indices, Indices]:
        """Sort as ``newest`` does."""
        values, count = self.values, len(self.values)
        if bool(np.all(values[1:] >= values[:-1])):
            return np.arange(count, dtype=np.int64), _starts(values[1:] != values[:-1], count)
        order, in_order = self._sorted()
        return order, _starts(in_order[1:] != in_order[:-1], count)

    def _sorted(self) -> tuple[Indices, npt.NDArray[np.int64]]:
        """Return a stable order, and values in that order that differ if the keys differ."""
        values, count = self.values, len(self.values)
        low = int(values.min())
        bits = (count - 1).bit_length()
        if (int(values.max()) - low).bit_length() + bits <= PACKED_BITS:
            packed = ((values - low) << bits) | np.arange(count, dtype=np.int64)
            packed.sort()
            return packed & ((1 << bits) - 1), packed >> bits
        order = np.argsort(values, kind="stable")
        return order, values[order]

    def matches(self, other: IntegerKeys) -> tuple[Indices, Indices]:
        """Search the other's keys with binary search; fastest if they are sorted as well."""
        if len(self) == 0:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing
        place = np.searchsorted(self.values, other.values)
        place[place == len(self)] = 0
        found = np.flatnonzero(self.values[place] == other.values)
        return place[found], found

    def interleave(self, other: IntegerKeys) -> Indices:
        """Insert each of the other's keys at its position."""
        count = len(self) + len(other)
        place = np.searchsorted(self.values, other.values, side="right") + np.arange(len(other))
        order = np.empty(count, dtype=np.int64)
        is_other = np.zeros(count, dtype=np.bool_)
        is_other[place] = True
        order[place] = np.arange(len(self), count)
        order[~is_other] = np.arange(len(self))
        return order

    def concat(self, others: Sequence[IntegerKeys]) -> IntegerKeys:
        """Return a copy."""
        return IntegerKeys(np.concatenate([self.values, *(other.values for other in others)]))


@dataclass(frozen=True, slots=True)
class FrameKeys:
    """Keys of several columns, or of strings, bytes or wide decimals."""

    frame: pl.DataFrame

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.frame.height

    @property
    def nbytes(self) -> int:
        """Size of the frame's buffers."""
        return int(self.frame.estimated_size())

    def slice(self, start: int, stop: int) -> FrameKeys:
        """Return a view."""
        return FrameKeys(self.frame.slice(start, stop - start))

    def take(self, rows: Indices) -> FrameKeys:
        """Return a copy."""
        return FrameKeys(self.frame[rows])

    def key_at(self, row: int) -> ComparableKey:
        """Return the row as a Polars tuple."""
        return self.frame.row(row)

    def rows_up_to(self, key: ComparableKey) -> int:
        """Find the number with binary search, which reads a few dozen rows."""
        return bisect_right(range(len(self)), key, key=self.frame.row)

    def rows_before(self, key: ComparableKey) -> int:
        """Find the number with binary search, which reads a few dozen rows."""
        return bisect_left(range(len(self)), key, key=self.frame.row)

    def newest(self, *, ordered: bool) -> Indices:
        """Sort codes (key_codes.py), then compare the keys of rows with equal codes if these are not exact."""
        count = self.frame.height
        if count == 0:
            return np.empty(0, dtype=np.int64)
        position_bits = (count - 1).bit_length()
        codes, is_exact = order_codes(self.frame, PACKED_BITS - position_bits)
        if is_exact:
            return IntegerKeys(codes).newest(ordered=ordered)
        packed = (codes << position_bits) | np.arange(count, dtype=np.int64)
        packed.sort()
        order = packed & ((1 << position_bits) - 1)
        is_tied = _has_equal_neighbour(packed >> position_bits)
        tied = np.sort(order[is_tied])
        if len(tied) > TIED_ROWS_MAX * count:
            return _newest_by_hash(self.frame)
        alone, tied = order[~is_tied], tied[_newest_by_hash(self.take(tied).frame)]
        in_order = IntegerKeys(codes[alone]).interleave(IntegerKeys(codes[tied]))
        return np.concatenate([alone, tied])[in_order]

    def grouped(self) -> tuple[Indices, Indices]:
        """Sort codes, then compare the keys of rows with equal codes if these are not exact."""
        count = self.frame.height
        if count == 0:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing
        position_bits = (count - 1).bit_length()
        codes, is_exact = order_codes(self.frame, PACKED_BITS - position_bits)
        if is_exact:
            return IntegerKeys(codes).grouped()
        packed = (codes << position_bits) | np.arange(count, dtype=np.int64)
        packed.sort()
        order, in_order = packed & ((1 << position_bits) - 1), packed >> position_bits
        differs = in_order[1:] != in_order[:-1]
        tied = np.flatnonzero(_has_equal_neighbour(in_order))
        if len(tied):
            # Comparing the keys only reorders rows with equal codes.
            rows, differ = _sorted_by_key(self.take(order[tied]).frame)
            order[tied] = order[tied][rows]
            is_neighbour = tied[1:] == tied[:-1] + 1
            within = tied[:-1][is_neighbour]
            differs[within] = differ[is_neighbour]
        return order, _starts(differs, count)

    def matches(self, other: FrameKeys) -> tuple[Indices, Indices]:
        """Match with a hash join."""
        mine = _with_position(self.frame)
        theirs = _with_position(other.frame).rename({POSITION: "other"})
        joined = theirs.join(mine, on=self.frame.columns, how="inner")
        return _positions(joined), joined["other"].to_numpy()

    def interleave(self, other: FrameKeys) -> Indices:
        """Interleave with a stable sort."""
        both = self.concat([other])
        return _positions(_with_position(both.frame).sort(self.frame.columns, maintain_order=True))

    def concat(self, others: Sequence[FrameKeys]) -> FrameKeys:
        """Return a copy."""
        return FrameKeys(pl.concat([self.frame, *(other.frame for other in others)], rechunk=True))


def _sorted_by_key(frame: pl.DataFrame) -> tuple[Indices, npt.NDArray[np.bool_]]:
    """Return the stable order of the rows, and for each but the first, whether it differs from its predecessor."""
    in_order = _with_position(frame).sort(frame.columns, maintain_order=True)
    keys = in_order.select(frame.columns)
    before, after = keys.slice(0, keys.height - 1), keys.slice(1)
    differ = after.select(pl.any_horizontal(each != other for each, other in zip(after, before, strict=True)))
    return _positions(in_order), differ.to_series().to_numpy()


def _newest_by_hash(frame: pl.DataFrame) -> Indices:
    last = _with_position(frame).unique(frame.columns, keep="last", maintain_order=True)
    return _positions(last.sort(frame.columns))


def _with_position(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.int_range(frame.height, dtype=pl.Int64).alias(POSITION))


def _positions(frame: pl.DataFrame) -> Indices:
    return frame[POSITION].to_numpy()


def _starts(differs_from_last: npt.NDArray[np.bool_], count: int) -> Indices:
    """Return the positions where a new key begins; ``differs_from_last`` starts with row 1."""
    return np.concatenate([np.zeros(min(count, 1), dtype=np.int64), np.flatnonzero(differs_from_last) + 1])


def _has_equal_neighbour(values: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    is_equal = values[1:] == values[:-1]
    has_one = np.zeros(len(values), dtype=np.bool_)
    has_one[1:] |= is_equal
    has_one[:-1] |= is_equal
    return has_one
