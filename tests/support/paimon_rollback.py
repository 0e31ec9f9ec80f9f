"""A rollback by Paimon, which deletes the newer snapshots instead of making one."""

from __future__ import annotations

from pathlib import Path

from storage_lib import DynamicTable


def roll_back_as_paimon_does(table: DynamicTable, snapshot_id: int) -> None:
    """Delete the snapshots after one; later commits use their ids again."""
    snapshots = Path(table.location) / "snapshot"
    for number in range(snapshot_id + 1, (table.inspect.latest_snapshot_id() or 0) + 1):
        (snapshots / f"snapshot-{number}").unlink()
    (snapshots / "LATEST").write_text(str(snapshot_id))
