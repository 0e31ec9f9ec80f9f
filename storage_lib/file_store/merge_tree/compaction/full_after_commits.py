"""Compacts a bucket fully after some commits, for tables whose streams see what full compactions changed."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy, CompactionUnit
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, kw_only=True)
class FullAfterCommits:
    """Each commit to a bucket leaves at least one file on level 0; below ``file_count`` of them, ``strategy`` picks."""

    strategy: CompactionStrategy
    file_count: int

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Everything, or what the strategy says."""
        fresh_count = sum(level_run.level == 0 for level_run in levels.runs)
        if fresh_count >= self.file_count:
            return FullCompaction().pick(levels)
        return self.strategy.pick(levels)
