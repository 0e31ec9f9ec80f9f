"""Why a source's changes since a position can't be applied, so that a refresh has to read the whole source again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.materialized.sources.source_positions import SourcePosition, position_of
from storage_lib.table.protocol.snapshot_log_properties import REWROTE, SnapshotLogProperties

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def why_full(
    name: str, table: DynamicTable, columns: Sequence[str], recorded: SourcePosition | None, newest_id: int
) -> str | None:
    """Return the reason, or None if the changes of ``columns`` from ``recorded`` to ``newest_id`` are known."""
    if recorded is None:
        return f"source {name} was not read before, or was recreated"
    if recorded.snapshot_id == 0:
        return None
    if newest_id < recorded.snapshot_id:
        return f"source {name} was rolled back from snapshot {recorded.snapshot_id} to {newest_id}"
    try:
        snapshots = [table.inspect.snapshot(each) for each in range(recorded.snapshot_id, newest_id + 1)]
    except (SnapshotExpiredError, NotFoundError):
        snapshots = []
    if not snapshots or recorded.snapshot_id < (table.inspect.earliest_snapshot_id() or 0):
        return f"snapshot {recorded.snapshot_id} of source {name} has expired"
    if position_of(snapshots[0]) != recorded:
        return f"source {name} was rolled back: snapshot {recorded.snapshot_id} is another one now"
    return _why_unknown(name, table, columns, snapshots)


def _why_unknown(name: str, table: DynamicTable, columns: Sequence[str], snapshots: Sequence[Snapshot]) -> str | None:
    for each in snapshots[1:]:
        if REWROTE in each.properties:
            return f"source {name} was rewritten in snapshot {each.id}"
        if _is_untracked(each):
            return f"snapshot {each.id} of source {name} changed rows without change tracking"
    before = table.refresh(schema_id=snapshots[0].schema_id).schema
    fields = {field.name: field for field in before.fields}
    changed = next((each for each in columns if fields.get(each) != table.schema.field(each)), None)
    if changed is not None:
        return f"column {changed} of source {name} was altered"
    if before.primary_keys != table.schema.primary_keys:
        return f"the primary key of source {name} was altered"
    return None


def _is_untracked(snapshot: Snapshot) -> bool:
    """Return whether the commit changed rows without reporting changes; appends of other engines are changes."""
    part = SnapshotLogProperties.of_snapshot(snapshot)
    if snapshot.commit_kind is CommitKind.APPEND:
        return part is not None and not part.tracked
    return snapshot.commit_kind is CommitKind.OVERWRITE and (part is None or not part.tracked)
