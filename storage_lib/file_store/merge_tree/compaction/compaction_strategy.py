"""Which files of a bucket to merge, and to which level: a decision, as a value. Compactor carries it out.

The rules of the game: of two versions of a key the newer lies above the older, before and after; what is merged into a
level takes in all that the level holds between its smallest and its largest key; the output never goes to level 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.compaction.key_intervals import KeyInterval, intervals_of
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionUnit:
    """Files to become one run of ``output_level``, or a stretch of it.

    ``older_keys`` are the key intervals of the files below the output. A row that only deletes has done its work
    where its key lies in none of them.
    """

    files: tuple[DataFileMeta, ...]
    output_level: int
    older_keys: tuple[KeyInterval, ...] = ()
    others: tuple[DataFileMeta, ...] | None = None
    """Where old versions are looked up, or marked as deleted: the bucket's other files from level 1 up."""
    level_max: int = 0
    """The deepest level of the bucket."""


class CompactionStrategy(Protocol):
    """Decides; does no I/O."""

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return the next unit to compact; None if nothing is due."""


def unit_of_newest(levels: Levels, run_count: int) -> CompactionUnit:
    """The ``run_count`` newest runs, as a unit.

    The output goes to just above the next run, or to the last level if there is none. Since it never goes to level 0,
    the rest of level 0 is taken in, and level 1 where that is next.
    """
    runs = levels.runs
    while run_count < len(runs) and runs[run_count].level == 0:
        run_count += 1
    if run_count < len(runs) and runs[run_count].level == 1:
        run_count += 1
        output_level = 1
    elif run_count < len(runs):
        output_level = runs[run_count].level - 1
    if run_count == len(runs):
        output_level = levels.level_max
    return CompactionUnit(
        files=tuple(file for level_run in runs[:run_count] for file in level_run.run.files),
        output_level=output_level,
        level_max=levels.level_max,
        older_keys=intervals_of(file for level_run in runs[run_count:] for file in level_run.run.files),
    )
