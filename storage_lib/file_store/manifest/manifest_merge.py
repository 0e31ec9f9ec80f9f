"""Chooses which manifests of a base list to fold into one, so that commits stay fast as history grows; pure.

    base list   M1 8 MB | M2 8 MB | 4000 entries | 1700 | 600 | 9 | 4 | 4 | 8 | ... 30 below the target size
                                                         └ newest half, forced ─────────────────────────────┘
                                  └ older ones join while they hold no more entries than all newer together ┘

Folding cancels adds against deletes. Sizes double from fold to fold, so an entry is rewritten O(log n) times and a
commit hardly ever pays for much of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta

_DELETED_SHARE_MAX = 4
"""Everything is folded once deletes are more than one in so many adds: then that is paid for by what it drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestMerge:
    """Sizes in bytes. ``merge_min_count`` manifests below ``target_file_size`` start a fold."""

    target_file_size: int
    merge_min_count: int
    full_threshold_bytes: int

    def choose(self, manifests: Sequence[ManifestFileMeta]) -> range:
        """Positions of the manifests to fold, adjacent in the list; empty if there is nothing to gain."""
        small = [each for each in manifests if each.file_size < self.target_file_size]
        if self._holds_many_deletes(manifests):
            return range(len(manifests))
        if len(small) < max(2, self.merge_min_count):
            return range(0)
        return self._newest(manifests)

    def _holds_many_deletes(self, manifests: Sequence[ManifestFileMeta]) -> bool:
        added = sum(each.num_added_files for each in manifests)
        deleted = sum(each.num_deleted_files for each in manifests)
        pending_bytes = sum(
            each.file_size for each in manifests if each.num_deleted_files > 0 or each.file_size < self.target_file_size
        )
        return pending_bytes >= self.full_threshold_bytes and deleted * _DELETED_SHARE_MAX > added

    def _newest(self, manifests: Sequence[ManifestFileMeta]) -> range:
        forced = max(2, self.merge_min_count // 2)
        start = len(manifests)
        entries = 0
        while start > 0:
            older = manifests[start - 1]
            is_forced = len(manifests) - start < forced
            if older.file_size >= self.target_file_size or not (is_forced or older.num_entries <= entries):
                break
            entries += older.num_entries
            start -= 1
        return range(start, len(manifests)) if len(manifests) - start > 1 else range(0)
