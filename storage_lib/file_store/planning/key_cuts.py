"""Division of splits whose files overlap into splits of key ranges, so that several tasks share one large bucket.

    files          |------------ largest ------------|
                      |---- other ----|
    row groups     | a  | b  | c  | d  | e  | f  | g |
    splits         [          )[           )[          )      each with the files that have keys in its range

Bounds are where row groups begin, because a task decodes whole row groups. They come from the footers of a bounded
number of files, which are cached: data files never change.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from storage_lib.file_store.data_file.comparable_key import ComparableKey, column_key
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.row_group_keys import RowGroupKeys
from storage_lib.file_store.split import Split
from storage_lib.schema.types.data_types import DataType

_SEARCHABLE = ".parquet"
"""Extension of files from which a task reads only the row groups of its range."""
_FOOTERS_PER_SPLIT_MAX = 8
_FOOTERS_PER_PLAN_MAX = 128
_REMEMBERED_FILES = 256
_SMALL_SHARE = 8
"""Files smaller than the target size divided by this have no influence on the bounds."""
_UNSEARCHABLE_SHARE = 4
"""Files that every task decodes whole may have the target size divided by this, in total."""

_Point: TypeAlias = tuple[ComparableKey, int]
"""Key where some bytes begin, and their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOrder:
    """Types of a table's key columns, and the order of serialized keys."""

    types: tuple[DataType, ...]
    comparable_key: Callable[[bytes], ComparableKey]

    def interval(self, file: DataFileMeta) -> tuple[ComparableKey, ComparableKey]:
        """Return the first and last key of a file."""
        return self.comparable_key(file.min_key), self.comparable_key(file.max_key)


class KeyCuts:
    """Cuts splits of one table. Threads may share it; it caches bounds of row groups by file.

    ``order`` is None for tables without sorted files, whose splits stay whole. ``row_group_keys`` reads the footer of
    a file of a split; it returns None if the footer bounds no keys.
    """

    def __init__(
        self,
        *,
        order: KeyOrder | None,
        row_group_keys: Callable[[Split, DataFileMeta], Sequence[RowGroupKeys] | None],
    ) -> None:
        self._order = order
        self._row_group_keys = row_group_keys
        self._known: OrderedDict[tuple[bytes, int, str], tuple[RowGroupKeys, ...] | None] = OrderedDict()
        self._lock = threading.Lock()

    def cut(self, splits: Sequence[Split], target_size_bytes: int) -> tuple[Split, ...]:
        """Return ``splits`` of a plan, those that are larger and have to be merged divided by keys, in key order.

        REQUIRES splits of ``Plan.splits(target_size_bytes)``. Each key is in exactly one of the splits. Equal splits
        are divided equally. Reads at most 128 footers, of the largest splits first; raises as
        ``FileStoreRead.row_group_keys``.
        """
        order = self._order
        if order is None:
            return tuple(splits)
        large = [index for index, split in enumerate(splits) if _is_large(split, target_size_bytes)]
        large.sort(key=lambda index: -splits[index].size_bytes)
        divided: dict[int, Sequence[Split]] = {}
        left = _FOOTERS_PER_PLAN_MAX
        for index in large:
            points, read = self._points(splits[index], order, target_size_bytes, min(left, _FOOTERS_PER_SPLIT_MAX))
            left -= read
            bounds = _bounds(points, order, target_size_bytes)
            divided[index] = list(_divided(splits[index], order, bounds))
        return tuple(part for index, split in enumerate(splits) for part in divided.get(index, (split,)))

    def _points(self, split: Split, order: KeyOrder, target: int, footers_max: int) -> tuple[list[_Point], int]:
        """Return the keys where parts of the files begin, and the number of footers used; no keys: don't cut.

        A footer without bounds of keys means that every task would decode the whole file.
        """
        if footers_max == 0:
            return [], 0
        counting = [file for file in split.files if file.file_size * _SMALL_SHARE >= target]
        counting.sort(key=lambda file: (-file.file_size, file.file_name))
        points: list[_Point] = []
        read = 0
        for file in counting:
            if read == footers_max:
                points.append((order.comparable_key(file.min_key), file.file_size))
                continue
            groups = self._row_groups(split, file)
            read += 1
            if groups is None or not any(group.low for group in groups):
                return [], read
            rows = sum(group.row_count for group in groups)
            points += ((group.low, file.file_size * group.row_count // max(1, rows)) for group in groups)
        return points, read

    def _row_groups(self, split: Split, file: DataFileMeta) -> Sequence[RowGroupKeys] | None:
        key = (split.partition, split.bucket, file.file_name)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        read = self._row_group_keys(split, file)
        groups = None if read is None else tuple(read)
        with self._lock:
            self._known[key] = groups
            while len(self._known) > _REMEMBERED_FILES:
                self._known.popitem(last=False)
        return groups


def _is_large(split: Split, target_size_bytes: int) -> bool:
    """Return whether a split has to be merged, is larger than the target, and can be read in parts."""
    if split.key_range is not None or len(split.files) == 1 or split.size_bytes <= target_size_bytes:
        return False
    others = sum(file.file_size for file in split.files if not file.file_name.endswith(_SEARCHABLE))
    return others * _UNSEARCHABLE_SHARE <= target_size_bytes


def _bounds(points: Sequence[_Point], order: KeyOrder, target_size_bytes: int) -> Iterator[ComparableKey]:
    """Yield keys, ascending, between which the points have about the target size; none of them is the first."""
    size = 0
    before: ComparableKey | None = None
    for key, size_from_here in sorted(points):
        if before is not None and key > before and size >= target_size_bytes and column_key(key, order.types):
            yield key
            size = 0
        before = key
        size += size_from_here


def _divided(split: Split, order: KeyOrder, bounds: Iterator[ComparableKey]) -> Iterator[Split]:
    intervals = [(file, *order.interval(file)) for file in split.files]
    for low, high in pairwise([None, *bounds, None]):
        key_range = KeyRange(low=low, high=high)
        files = tuple(file for file, first, last in intervals if key_range.overlaps(first, last))
        if files:
            is_whole = low is None and high is None
            yield replace(split, files=files, key_range=None if is_whole else key_range)
