"""Compacts all of a bucket where rows take something back, for tables that can't be merged by halves."""

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
    """``strategy`` decides when, and also what as long as no file has rows that delete (``layered.py`` says why)."""

    strategy: CompactionStrategy

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """The strategy's unit, or everything."""
        unit = self.strategy.pick(levels)
        if unit is None or all(file.delete_row_count == 0 for file in unit.files):
            return unit
        return unit_of_newest(levels, len(levels.runs))
