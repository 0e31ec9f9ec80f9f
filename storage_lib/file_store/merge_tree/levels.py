"""A bucket's files by level of the LSM tree: each file of level 0 is a run of its own, each deeper level one run.

newest    level 0   [a] [b] [c]      files may overlap
  |       level 4   [d   e]          one run: key intervals are disjoint
oldest    level 5   [f  g  h]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.sorted_run import LevelSortedRun, SortedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """State of one bucket, immutable. ``runs`` are newest first."""

    runs: tuple[LevelSortedRun, ...]
    level_count: int
    comparable_key: Callable[[bytes], ComparableKey]

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        """All live files, newest run first."""
        return tuple(file for level_run in self.runs for file in level_run.run.files)

    @property
    def level_max(self) -> int:
        """The deepest level, for the oldest rows."""
        return self.level_count - 1

    @property
    def max_sequence_number(self) -> int:
        """The highest sequence number in use, -1 without files."""
        return max((file.max_sequence_number for file in self.files), default=-1)

    def apply(self, increment: Increment) -> Levels:
        """Return the state after a change. Raises ``KeyError`` if it deletes a file that is not live."""
        live = {file.identity: file for file in self.files}
        for file in (*increment.deleted_files, *increment.compact_before):
            del live[file.identity]
        for file in (*increment.new_files, *increment.compact_after):
            live[file.identity] = file
        return levels_of(live.values(), level_count=self.level_count, comparable_key=self.comparable_key)


def levels_of(
    files: Iterable[DataFileMeta], *, level_count: int, comparable_key: Callable[[bytes], ComparableKey]
) -> Levels:
    """Sort a bucket's live files into levels; ``level_count`` grows if a file is on a deeper level."""
    by_level: dict[int, list[DataFileMeta]] = {}
    for file in files:
        by_level.setdefault(file.level, []).append(file)
    fresh = sorted(by_level.pop(0, []), key=_age, reverse=True)
    runs = [LevelSortedRun(level=0, run=SortedRun(files=(file,))) for file in fresh]
    for level in sorted(by_level):
        in_key_order = sorted(by_level[level], key=lambda file: comparable_key(file.min_key))
        runs.append(LevelSortedRun(level=level, run=SortedRun(files=tuple(in_key_order))))
    deepest = max((run.level for run in runs), default=0)
    return Levels(runs=tuple(runs), level_count=max(level_count, deepest + 1), comparable_key=comparable_key)


def _age(file: DataFileMeta) -> tuple[int, int, str]:
    return file.max_sequence_number, file.min_sequence_number, file.file_name
