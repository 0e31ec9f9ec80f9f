"""Partition files into sections that share no key, and each section into the fewest sorted runs.

Keys ->    |--a--|   |--b--|          |----d----|
               |--c--|            |--e--|            a, b, c overlap in a chain: one section of the runs (a b), (c);
                                                     d and e: another, of the runs (e), (d).

Sections can be read one after another; within a section the runs have to be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappush, heapreplace
from typing import TypeAlias

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.sorted_run import SortedRun

Section: TypeAlias = tuple[SortedRun, ...]
"""Runs over one key interval that no other section overlaps."""

_Interval: TypeAlias = tuple[ComparableKey, ComparableKey, DataFileMeta]


def interval_partition(
    files: Iterable[DataFileMeta], comparable_key: Callable[[bytes], ComparableKey]
) -> list[Section]:
    """Return the sections in key order; ``comparable_key`` converts serialized keys to comparable ones.

    This is the greedy colouring of an interval graph: a file is added to the run that ends first, if that run has ended
    before the file begins, else to a new run. So a section has as many runs as the maximum of files that overlap at a
    key.
    """
    intervals = sorted(
        ((comparable_key(file.min_key), comparable_key(file.max_key), file) for file in files),
        key=lambda interval: interval[:2],
    )
    sections: list[Section] = []
    begin = 0
    section_end: ComparableKey | None = None
    for index, (low, high, _) in enumerate(intervals):
        if section_end is not None and low > section_end:
            sections.append(_fewest_runs(intervals[begin:index]))
            begin, section_end = index, high
        else:
            section_end = high if section_end is None else max(section_end, high)
    if intervals:
        sections.append(_fewest_runs(intervals[begin:]))
    return sections


def _fewest_runs(intervals: Sequence[_Interval]) -> Section:
    runs: list[list[DataFileMeta]] = []
    ends: list[tuple[ComparableKey, int]] = []
    for low, high, file in intervals:
        if ends and ends[0][0] < low:
            _, run = ends[0]
            runs[run].append(file)
            heapreplace(ends, (high, run))
        else:
            runs.append([file])
            heappush(ends, (high, len(runs) - 1))
    return tuple(SortedRun(files=tuple(run)) for run in runs)
