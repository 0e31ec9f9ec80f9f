"""Merges level 0 as soon as it has a file, for tables whose readers skip level 0.

With deletion vectors and with first-row, engines read the levels from 1 up without merging and skip level 0; with
changelog-producer=lookup their streams do: a commit is visible to them only after the next compaction. Paimon's own
writers merge level 0 at every commit (its ForceUpLevel0Compaction).
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
    """Level 0 is always due; ``strategy`` decides about the other levels."""

    strategy: CompactionStrategy

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return the strategy's unit if it includes level 0 or level 0 is empty; else all of level 0."""
        unit = self.strategy.pick(levels)
        fresh_count = sum(level_run.level == 0 for level_run in levels.runs)
        takes_fresh = unit is not None and any(file.level == 0 for file in unit.files)
        if takes_fresh or not fresh_count:
            return unit
        return unit_of_newest(levels, fresh_count)
