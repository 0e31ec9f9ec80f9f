"""Universal compaction, as in RocksDB: by size amplification, then size ratio, then number of runs.

1. Size amplification: if all runs but the oldest are together larger than ``max_size_amplification_percent`` of the
   oldest, merge everything.
2. Size ratio: collect runs from the newest on, until the next is larger than the collected ones times
   (100 + ``size_ratio_percent``) / 100; merge them if there are at least two.
3. Number of runs: if there are more than ``compaction_trigger``, merge the newest ones to reduce the number to that,
   and more by rule 2.

All rules require at least ``compaction_trigger`` runs.
(https://github.com/facebook/rocksdb/wiki/Universal-Compaction)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit, unit_of_newest
from storage_lib.file_store.merge_tree.levels import Levels
from storage_lib.file_store.merge_tree.sorted_run import LevelSortedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class UniversalCompaction:
    """Default strategy; its parameters are table options."""

    max_size_amplification_percent: int = 200
    size_ratio_percent: int = 1
    compaction_trigger: int = 5

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return the newest runs that the first matching rule chooses; None if no rule matches."""
        runs = levels.runs
        if len(runs) < max(2, self.compaction_trigger):
            return None
        if self._is_amplified(runs):
            return unit_of_newest(levels, len(runs))
        run_count = self._grown_by_size_ratio(runs, 1)
        if run_count > 1:
            return unit_of_newest(levels, run_count)
        if len(runs) > self.compaction_trigger:
            at_least = len(runs) - self.compaction_trigger + 1
            return unit_of_newest(levels, self._grown_by_size_ratio(runs, at_least))
        return None

    def _is_amplified(self, runs: Sequence[LevelSortedRun]) -> bool:
        newer = sum(level_run.run.size_bytes for level_run in runs[:-1])
        return newer * 100 > self.max_size_amplification_percent * runs[-1].run.size_bytes

    def _grown_by_size_ratio(self, runs: Sequence[LevelSortedRun], run_count: int) -> int:
        collected = sum(level_run.run.size_bytes for level_run in runs[:run_count])
        for level_run in runs[run_count:]:
            if level_run.run.size_bytes * 100 > collected * (100 + self.size_ratio_percent):
                break
            collected += level_run.run.size_bytes
            run_count += 1
        return run_count
