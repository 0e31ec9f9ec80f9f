"""The commit of a materialized table's last refresh, found by the positions of its sources in its snapshots."""

from __future__ import annotations

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.table.protocol.source_offsets import IDS, SOURCES


def last_refresh(snapshots: SnapshotHistory) -> Snapshot | None:
    """Return the snapshot with which the table reached its present positions; None before the first refresh.

    Later snapshots, for example of compactions, carry the positions forward. If the snapshot has expired, the oldest
    one with these positions is returned.
    """
    found: Snapshot | None = None
    newest = snapshots.latest_id() or 0
    for snapshot_id in range(newest, 0, -1):
        try:
            snapshot = snapshots.load(snapshot_id)
        except (SnapshotExpiredError, NotFoundError):
            break
        if SOURCES not in snapshot.properties:  # another engine's commit, which drops our properties
            continue
        if found is not None and _positions(snapshot) != _positions(found):
            break
        found = snapshot
    return found


def _positions(snapshot: Snapshot) -> tuple[str | None, str | None]:
    return snapshot.properties.get(SOURCES), snapshot.properties.get(IDS)
