"""The commit of a source that an earlier try of a task may have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib import DynamicTable

__all__ = ["last_of_source"]


def last_of_source(table: DynamicTable, source: str, before: int) -> int | None:
    """Return the newest snapshot after ``before`` that read the source further; None if there is none.

    An earlier try may have committed it. The offsets of a snapshot that has expired are not known.
    """
    from storage_lib.errors import SnapshotExpiredError

    newest = table.inspect.latest_snapshot_id() or 0
    try:
        reached = table.inspect.source_offsets(source) if newest > before else None
        for snapshot_id in range(newest, before, -1):
            earlier = table.inspect.source_offsets(source, snapshot_id=snapshot_id - 1) if snapshot_id > 1 else None
            if earlier != reached:
                return snapshot_id
    except SnapshotExpiredError:
        pass
    return None
