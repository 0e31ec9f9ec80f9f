"""Intervals of keys, ends included, and which of them overlap; used by compaction for files that it does not open."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta

ComparableKeyOf: TypeAlias = Callable[[bytes], ComparableKey]
"""Convert a serialized key to a comparable one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyInterval:
    """Two serialized keys and all keys between them."""

    low: bytes
    high: bytes


def interval_of(files: Iterable[DataFileMeta], comparable_key: ComparableKeyOf) -> KeyInterval:
    """Return the interval from the smallest to the largest key of at least one file."""
    files = tuple(files)
    return KeyInterval(
        low=min((file.min_key for file in files), key=comparable_key),
        high=max((file.max_key for file in files), key=comparable_key),
    )


def intervals_of(files: Iterable[DataFileMeta]) -> tuple[KeyInterval, ...]:
    """Return the interval of each file."""
    return tuple(KeyInterval(low=file.min_key, high=file.max_key) for file in files)


class CoveredKeys:
    """Many intervals, prepared for testing whether another one overlaps any of them."""

    def __init__(self, intervals: Iterable[KeyInterval], comparable_key: ComparableKeyOf) -> None:
        self._comparable_key = comparable_key
        ordered = sorted((comparable_key(each.low), comparable_key(each.high)) for each in intervals)
        self._lows = [low for low, _ in ordered]
        self._highest = list(accumulate((high for _, high in ordered), max))
        """The highest key of the intervals up to each one."""

    def touch(self, interval: KeyInterval) -> bool:
        """Return whether ``interval`` overlaps any of the intervals."""
        begun = bisect_right(self._lows, self._comparable_key(interval.high))
        return begun > 0 and self._highest[begun - 1] >= self._comparable_key(interval.low)
