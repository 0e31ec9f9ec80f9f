"""Which files of rejected records to merge, so that their list stays short however many commits reject records.

Files of about the same size are merged, so that each record is rewritten a few times at most. Files whose records were
written far apart are not: a file is kept until its newest record has expired, and old records would stay for longer.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.file_store.rejected.rejected_list import RejectedFile

MERGED_AT_ONCE = 8
_SMALLEST_BYTES = 64 << 10
_LARGEST_BYTES = 64 << 20
_GROWTH = 8
_PARTS_OF_RETENTION = 8


def files_to_merge(files: Sequence[RejectedFile], retention_ms: int) -> tuple[RejectedFile, ...]:
    """Return files of one size that were written at about the same time, if there are enough; otherwise none."""
    groups: dict[tuple[int, int], list[RejectedFile]] = {}
    for each in files:
        if each.size_bytes < _LARGEST_BYTES:
            period = each.newest_millis // max(1, retention_ms // _PARTS_OF_RETENTION)
            groups.setdefault((_tier(each.size_bytes), period), []).append(each)
    found = [group for group in groups.values() if len(group) >= MERGED_AT_ONCE]
    return tuple(min(found, key=lambda group: sum(each.size_bytes for each in group))) if found else ()


def _tier(size_bytes: int) -> int:
    tier, largest = 0, _SMALLEST_BYTES
    while size_bytes >= largest:
        tier, largest = tier + 1, largest * _GROWTH
    return tier
