"""Compacts the whole bucket if rows retract values, for tables that can't be merged in parts."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import (
    CompactionStrategy,
    CompactionUnit,
    unit_of_newest,
)
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, kw_only=True)
class WholeBucketWithDeletes:
    """``strategy`` decides when to compact, and also what if no file has delete rows (``layered.py`` explains why)."""

    strategy: CompactionStrategy

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return the strategy's unit, or all runs."""
        unit = self.strategy.pick(levels)
        if unit is None or all(file.delete_row_count == 0 for file in unit.files):
            return unit
        return unit_of_newest(levels, len(levels.runs))
