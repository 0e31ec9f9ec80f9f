"""Choice of the manifests of a base list to fold into one run, so that commits stay fast as history grows; pure.

    base list   run of 8 MB | run of 8 MB | 4000 entries | 1700 | 600 | 9 | 4 | 4 | 8 | ... 30 below the target size
                                                               └ newest half, forced ─────────────────────────────┘
                                        └ older ones join while they hold no more entries than all newer together ┘

Folding cancels adds against deletes. Sizes double from fold to fold, so an entry is rewritten O(log n) times and a
commit rarely rewrites much of the table. A fold writes a *run*: manifests without common partitions, so that a
reader of one partition opens one of them. Here a run, recognised by its name, counts as one manifest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta

_DELETED_SHARE_MAX = 4
"""Fold everything once there is more than one delete per this many adds: the dropped entries pay for it."""

RUN_ENTRIES = 1000
"""A manifest of a run is closed after the partition that brings it to this many entries."""

_OPENED_ENTRIES_MAX = 5 * RUN_ENTRIES
"""If a reader of one partition may have to read more entries than this, runs are folded for that reason alone."""

_OF_RUN = re.compile(r"(.*-run)-\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestMerge:
    """Settings of the choice, sizes in bytes. ``merge_min_count`` manifests below ``target_file_size`` start a fold."""

    target_file_size: int
    merge_min_count: int
    full_threshold_bytes: int

    def choose(self, manifests: Sequence[ManifestFileMeta]) -> range:
        """Return the positions of the manifests to fold, adjacent in the list; empty if a fold gains nothing."""
        runs = _runs(manifests)
        small = [run for run in runs if run.size < self.target_file_size]
        if self._holds_many_deletes(runs):
            return range(len(manifests))
        opened_entries = sum(min(run.added + run.deleted, RUN_ENTRIES) for run in small)
        if len(small) < max(2, self.merge_min_count) and opened_entries <= _OPENED_ENTRIES_MAX:
            return range(0)
        chosen = self._newest(runs, forced=max(2, min(self.merge_min_count, len(small)) // 2))
        return range(runs[chosen.start].start, len(manifests)) if chosen else range(0)

    def _holds_many_deletes(self, runs: Sequence[_Run]) -> bool:
        added = sum(run.added for run in runs)
        deleted = sum(run.deleted for run in runs)
        pending_bytes = sum(run.size for run in runs if run.deleted > 0 or run.size < self.target_file_size)
        return pending_bytes >= self.full_threshold_bytes and deleted * _DELETED_SHARE_MAX > added

    def _newest(self, runs: Sequence[_Run], *, forced: int) -> range:
        start = len(runs)
        entries = 0
        while start > 0:
            older = runs[start - 1]
            is_forced = len(runs) - start < forced
            if older.size >= self.target_file_size or not (is_forced or older.added + older.deleted <= entries):
                break
            entries += older.added + older.deleted
            start -= 1
        return range(start, len(runs)) if len(runs) - start > 1 else range(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Adjacent manifests of one fold, or a single manifest of a commit; ``start`` is the position of the first."""

    start: int
    size: int
    added: int
    deleted: int


def _runs(manifests: Sequence[ManifestFileMeta]) -> list[_Run]:
    runs: list[_Run] = []
    last_name: str | None = None
    for position, manifest in enumerate(manifests):
        found = _OF_RUN.fullmatch(manifest.file_name)
        name = None if found is None else found.group(1)
        if name is None or name != last_name:
            runs.append(_Run(start=position, size=0, added=0, deleted=0))
        run = runs[-1]
        runs[-1] = _Run(
            start=run.start,
            size=run.size + manifest.file_size,
            added=run.added + manifest.num_added_files,
            deleted=run.deleted + manifest.num_deleted_files,
        )
        last_name = name
    return runs
