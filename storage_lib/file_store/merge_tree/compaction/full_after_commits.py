"""Compacts a bucket fully after some commits, for tables whose streams read the changes of full compactions."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy, CompactionUnit
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, kw_only=True)
class FullAfterCommits:
    """Full compaction if level 0 has ``file_count`` files, at least one per commit to the bucket; else ``strategy``."""

    strategy: CompactionStrategy
    file_count: int

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return a full compaction, or the unit of the strategy."""
        fresh_count = sum(level_run.level == 0 for level_run in levels.runs)
        if fresh_count >= self.file_count:
            return FullCompaction().pick(levels)
        return self.strategy.pick(levels)
