"""Choice of the files of a bucket to merge, and of the output level, as a value for the compactor.

Invariants: of two versions of a key the newer is above the older, before and after; a merge into a level includes
all of that level between its smallest and its largest key; the output level is never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.merge_tree.compaction.key_intervals import KeyInterval, intervals_of
from storage_lib.file_store.merge_tree.levels import Levels


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionUnit:
    """Files to merge into one run of ``output_level``, or a part of it.

    ``older_keys`` are the key intervals of the files below the output. A delete row whose key is in none of them can be
    dropped.
    """

    files: tuple[DataFileMeta, ...]
    output_level: int
    older_keys: tuple[KeyInterval, ...] = ()
    others: tuple[DataFileMeta, ...] | None = None
    """The bucket's other files from level 1 up, in which old versions are looked up or marked; else None."""
    level_max: int = 0
    """Deepest level of the bucket."""


class CompactionStrategy(Protocol):
    """Chooses files without I/O."""

    def pick(self, levels: Levels) -> CompactionUnit | None:
        """Return the next unit to compact; None if nothing is due."""


def unit_of_newest(levels: Levels, run_count: int) -> CompactionUnit:
    """Return a unit of the ``run_count`` newest runs.

    The output level is just above the next run, or the last level if there is no next run. Since it is never 0, the
    unit includes the rest of level 0, and level 1 if that comes next.
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
