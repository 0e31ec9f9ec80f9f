"""Full compaction: merge all files into one run at the last level."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit, unit_of_newest
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, slots=True, kw_only=True)
class FullCompaction:
    """Strategy of an explicit ``COMPACT``."""

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return all runs; None if they are already one run at the last level without delete rows."""
        runs = levels.runs
        is_one_run = len(runs) == 1 and runs[0].level == levels.level_max
        if not runs or (is_one_run and all(file.delete_row_count == 0 for file in levels.files)):
            return None
        return unit_of_newest(levels, len(runs))
