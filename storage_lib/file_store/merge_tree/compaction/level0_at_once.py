"""Merges whatever is in level 0 as soon as anything is, for tables that others read without it.

With deletion vectors, engines read the levels from 1 up as they are and pass over level 0: a commit is visible to them
only after the next compaction. Paimon's own writers merge level 0 at every commit (its ForceUpLevel0Compaction).
"""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import (
    CompactionStrategy,
    CompactionUnit,
    unit_of_newest,
)
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, kw_only=True)
class Level0AtOnce:
    """``strategy`` decides what beyond level 0 is due."""

    strategy: CompactionStrategy

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """The strategy's unit, else level 0; None if that is empty."""
        unit = self.strategy.pick(levels)
        fresh_count = sum(level_run.level == 0 for level_run in levels.runs)
        if unit is not None or not fresh_count:
            return unit
        return unit_of_newest(levels, fresh_count)
