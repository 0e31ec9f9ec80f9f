"""Leveled compaction, as in RocksDB: each level a sorted run, about ``level_multiplier`` times the one above.

    level 0   [a] [b] [c] [d]             fresh; due by number of files
    level 4   [e ][f ][g ]                the base level: where level 0 goes; due by bytes
    level 5   [h  ][i  ][j  ][k  ][l  ]   the last level: nearly all rows, never due

1. Targets are computed from the last level up, so that the shape fits any size of table: a level has the target
   of the one below divided by ``level_multiplier``. The base level is the first whose target is at most
   ``level_base_bytes``; the levels between it and level 0 stay empty.
2. Scores: level 0 has its number of files over ``level0_trigger``, another level its bytes over its target. The highest
   is due once it reaches 1; among equals, the upper level.
3. All of level 0 moves into the base level. Another level moves a stretch of neighbouring files to the next, enough
   to bring it down to its target: the one that overlaps the fewest bytes there.

Compared with universal compaction, write amplification is higher, read and space amplification are lower.
(https://github.com/facebook/rocksdb/wiki/Leveled-Compaction, with dynamic level sizes; its stretch is one file long)
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.key_intervals import CoveredKeys, interval_of, intervals_of
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LeveledCompaction:
    """Strategy for tables that are read more than written; its parameters are table options."""

    level0_trigger: int = 4
    level_base_bytes: int = 1 << 30
    level_multiplier: int = 5

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return level 0, or part of a level that exceeds its target, with the overlapping files of the next level."""
        by_level = _by_level(levels)
        base_level, targets = self._targets(levels, by_level)
        scores = {0: len(by_level[0]) / self.level0_trigger}
        for level in range(base_level, levels.level_max):
            scores[level] = _bytes(by_level[level]) / targets[level]
        due = max(scores, key=lambda level: (scores[level], -level))
        if scores[due] < 1:
            return None
        if due == 0:
            return _unit(levels, by_level, by_level[0], base_level)
        stretch = _cheapest_stretch(levels, by_level[due], by_level[due + 1], _bytes(by_level[due]) - targets[due])
        return _unit(levels, by_level, stretch, due + 1)

    def _targets(self, levels: Levels, by_level: Sequence[Sequence[DataFileMeta]]) -> tuple[int, dict[int, float]]:
        """Return the base level, and the target bytes of each level from there on."""
        last = levels.level_max
        target = float(max(_bytes(files) for files in by_level[1:]))
        targets = {last: target}
        level = last
        upper = min((each for each in range(1, last) if by_level[each]), default=last)
        # No level may be skipped on the way down: a level that has files stays in use, whatever created them.
        while level > 1 and (target > self.level_base_bytes or level > upper):
            level -= 1
            target /= self.level_multiplier
            targets[level] = max(target, self.level_base_bytes / self.level_multiplier)
        return level, targets


def _by_level(levels: Levels) -> list[list[DataFileMeta]]:
    """Return the files by level, from level 1 on in key order."""
    by_level: list[list[DataFileMeta]] = [[] for _ in range(levels.level_count)]
    for level_run in levels.runs:
        by_level[level_run.level] += level_run.run.files
    return by_level


def _unit(
    levels: Levels, by_level: Sequence[Sequence[DataFileMeta]], files: Sequence[DataFileMeta], output_level: int
) -> CompactionUnit:
    """Return a unit of ``files`` and all files of the output level that overlap their key interval."""
    return CompactionUnit(
        files=(*files, *_within(levels, files, by_level[output_level])),
        output_level=output_level,
        older_keys=intervals_of(file for below in by_level[output_level + 1 :] for file in below),
    )


def _within(levels: Levels, files: Sequence[DataFileMeta], others: Sequence[DataFileMeta]) -> tuple[DataFileMeta, ...]:
    covered = CoveredKeys([interval_of(files, levels.comparable_key)], levels.comparable_key)
    return tuple(other for other, interval in zip(others, intervals_of(others), strict=True) if covered.touch(interval))


def _cheapest_stretch(
    levels: Levels, files: Sequence[DataFileMeta], below: Sequence[DataFileMeta], size_bytes: float
) -> Sequence[DataFileMeta]:
    """Return the neighbours of at least ``size_bytes`` with the lowest rewrite cost in ``below`` per byte."""
    ends = [levels.comparable_key(file.max_key) for file in below]
    begins = [levels.comparable_key(file.min_key) for file in below]
    bytes_up_to = [0, *accumulate(file.file_size for file in below)]

    def cost(stretch: Sequence[DataFileMeta]) -> float:
        first = bisect_left(ends, levels.comparable_key(stretch[0].min_key))
        stop = bisect_right(begins, levels.comparable_key(stretch[-1].max_key))
        return (bytes_up_to[max(first, stop)] - bytes_up_to[first]) / max(1, _bytes(stretch))

    return min(_stretches(files, size_bytes), key=cost)


def _stretches(files: Sequence[DataFileMeta], size_bytes: float) -> Iterator[Sequence[DataFileMeta]]:
    """For each file, yield the fewest neighbours from it on that have ``size_bytes``, at least one."""
    stop, held = 0, 0
    for start in range(len(files)):
        while stop < len(files) and (stop == start or held < size_bytes):
            held += files[stop].file_size
            stop += 1
        if held < size_bytes and start > 0:
            return
        yield files[start:stop]
        held -= files[start].file_size


def _bytes(files: Sequence[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)
