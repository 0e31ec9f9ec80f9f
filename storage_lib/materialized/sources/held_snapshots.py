"""Which snapshots of its sources a materialized table holds, and how far they are behind, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.materialized.sources.source_positions import recorded_position
from storage_lib.table.protocol.source_offsets import SourceOffsets

if TYPE_CHECKING:
    from storage_lib.materialized.sources.source import Source
    from storage_lib.table.dynamic_table import DynamicTable


def held_snapshots(table: DynamicTable, sources: Mapping[str, Source]) -> dict[str, str]:
    """Return, by the name of the source, which of its snapshots the table holds and which is the newest."""
    newest = table.inspect.latest_snapshot_id()
    recorded = SourceOffsets() if newest is None else table.inspect.source_positions(newest)
    found = {}
    for name, source in sources.items():
        position = recorded_position(recorded, source.key)
        held = "not read yet" if position is None else source.named(position.snapshot_id)
        found[name] = f"{held}, the newest is {source.named(source.newest())}"
    return found
