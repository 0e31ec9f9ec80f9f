"""Compares two sides in bounded memory, by ranges of the key.

    digests of a range on both sides ── agree: the same rows
                                     ├─ differ, and the rows fit into memory: they are compared value by value
                                     └─ differ, and there are more: the range is divided, and again

The first range is all rows, so that equal sides are read once. Later reads ask each side only for the rows between the
first and the last key that differ, as far as it can tell them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from storage_lib.progress.operation import Operation
from storage_lib.verification.column_kind import ColumnKind
from storage_lib.verification.compared_rows import ComparedRows, KeyBounds, common_frames
from storage_lib.verification.key_ranges import OUTSIDE, KeyRange, KeyRanges
from storage_lib.verification.named_differences import NamedDifferences
from storage_lib.verification.range_digests import RangeDigests
from storage_lib.verification.row_differences import by_key, counted, without_key
from storage_lib.verification.row_hashes import row_hashes
from storage_lib.verification.value_kind import ValueKind

_RANGES_PER_READ = 1_024
_DIVIDED_PER_READ = 64
_PARTS_IN_MEMORY = 4
_ORDERED_ALIKE = (ValueKind.INTEGER, ValueKind.TEXT)
"""Forms whose order all sides have, so that they can read by bounds."""
_HASH = "\0row hash"
"""Stands for the key of rows without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _DifferingRange:
    """A range whose digests differ, with its size on both sides together and some of its keys."""

    range: KeyRange
    size: int
    row_counts: tuple[int, int]
    keys: pl.DataFrame


@dataclass(slots=True)
class Comparison:
    """Compares the rows of a table and its source in the columns of ``forms``; ``key`` is empty for rows without one.

    At most about ``memory`` bytes of rows are compared value by value at a time.
    """

    table: ComparedRows
    source: ComparedRows
    forms: Mapping[str, ColumnKind]
    key: tuple[str, ...]
    memory: int
    found: NamedDifferences
    steps: Operation
    row_counts: tuple[int, int] = (0, 0)
    range_count: int = 0

    def run(self) -> None:
        """Compare all rows."""
        pending = self._digested([KeyRange()])
        while pending:
            large = [each for each in pending if each.size > self.memory and each.keys.height > 1]
            self._compare_whole([each for each in pending if each.size <= self.memory or each.keys.height == 1])
            now, later = large[:_DIVIDED_PER_READ], large[_DIVIDED_PER_READ:]
            parts = [part for each in now for part in self._parts(each, _RANGES_PER_READ // len(now))]
            pending = [*(self._digested(parts) if parts else ()), *later]

    @property
    def _key_types(self) -> dict[str, pl.DataType]:
        return {name: self.forms[name].polars for name in self.key} or {_HASH: pl.Int64()}

    def _ranges(self, ranges: Sequence[KeyRange]) -> KeyRanges:
        read_by = self.key[0] if self.key and self.forms[self.key[0]] in _ORDERED_ALIKE else None
        return KeyRanges(ranges, self._key_types, read_by=read_by)

    def _digested(self, ranges: Sequence[KeyRange]) -> list[_DifferingRange]:
        """Read ranges, which are in order, and return those that differ."""
        of = self._ranges(ranges)
        table, source = (RangeDigests(of, [*self._key_types], [*self.forms]) for _ in range(2))
        for side, digests in ((self.table, table), (self.source, source)):
            for frame in self._frames(side, of.bounds):
                digests.add(frame)
        if not self.range_count:
            self.row_counts = int(table.row_counts.sum()), int(source.row_counts.sum())
        self.range_count += len(ranges)
        return [
            _DifferingRange(
                range=ranges[place],
                size=int(table.sizes[place] + source.sizes[place]),
                row_counts=(int(table.row_counts[place]), int(source.row_counts[place])),
                keys=table.keys(source, place),
            )
            for place in table.differs(source)
        ]

    def _parts(self, large: _DifferingRange, parts_max: int) -> list[KeyRange]:
        wanted = _PARTS_IN_MEMORY * -(-large.size // self.memory)
        return large.range.divided(large.keys, max(2, min(wanted, parts_max)))

    def _compare_whole(self, ranges: Sequence[_DifferingRange]) -> None:
        """Compare ranges value by value, as many at a time as fit into memory."""
        batch: list[KeyRange] = []
        size = 0
        for each in ranges:
            if self.key and each.size > self.memory and max(each.row_counts) > 1:
                self.found.add_repeated(each.keys.row(0, named=True), *each.row_counts)
                continue
            if batch and size + each.size > self.memory:
                self._compare(batch)
                batch, size = [], 0
            batch.append(each.range)
            size += each.size
        if batch:
            self._compare(batch)

    def _compare(self, ranges: Sequence[KeyRange]) -> None:
        of = self._ranges(ranges)
        if self.key:
            table, source = (self._rows(side, of) for side in (self.table, self.source))
            self.found.add(by_key(table, source, self.key))
        else:
            table, source = (self._counted_rows(side, of) for side in (self.table, self.source))
            self.found.add(without_key(table, source))

    def _rows(self, side: ComparedRows, of: KeyRanges) -> pl.DataFrame:
        nothing = pl.DataFrame(schema={name: form.polars for name, form in self.forms.items()})
        return pl.concat([nothing, *self._frames_inside(side, of)])

    def _counted_rows(self, side: ComparedRows, of: KeyRanges) -> pl.DataFrame:
        """Return distinct rows with their numbers: one row may occur more often than fits into memory."""
        counts = counted(pl.DataFrame(schema={name: form.polars for name, form in self.forms.items()}))
        for frame in self._frames_inside(side, of):
            counts = counted(pl.concat([counts, counted(frame)]))
        return counts

    def _frames_inside(self, side: ComparedRows, of: KeyRanges) -> Iterator[pl.DataFrame]:
        for frame in self._frames(side, of.bounds):
            inside = frame.filter(of.ids(frame) != OUTSIDE)
            if inside.height:
                yield inside.select([*self.forms])

    def _frames(self, side: ComparedRows, bounds: KeyBounds | None) -> Iterator[pl.DataFrame]:
        for frame in common_frames(side, self.forms, bounds):
            self.steps.advance(frame.height)
            if self.key:
                yield frame
            else:
                yield frame.with_columns(pl.Series(_HASH, row_hashes(frame, [*self.forms]).view("int64")))
