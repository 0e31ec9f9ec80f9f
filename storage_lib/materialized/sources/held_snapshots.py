"""Which snapshots of its sources a materialized table holds, and how far they are behind, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.materialized.sources.source_positions import recorded_position, source_name
from storage_lib.table.protocol.source_offsets import SourceOffsets

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def held_snapshots(table: DynamicTable, sources: Mapping[str, DynamicTable]) -> dict[str, str]:
    """Return, by the name of the source, which of its snapshots the table holds and which is the newest."""
    newest = table.inspect.latest_snapshot_id()
    recorded = SourceOffsets() if newest is None else table.inspect.source_positions(newest)
    found = {}
    for name, source in sources.items():
        position = recorded_position(recorded, source_name(source))
        held = "not read yet" if position is None else _named(position.snapshot_id)
        found[name] = f"{held}, the newest is {_named(source.inspect.latest_snapshot_id() or 0)}"
    return found


def _named(snapshot_id: int) -> str:
    return f"snapshot {snapshot_id}" if snapshot_id else "the empty table"
