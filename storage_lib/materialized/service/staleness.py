"""Since when a materialized table lags behind its sources."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from storage_lib.materialized.sources.downstream_tables import tables_refreshed_first
from storage_lib.materialized.sources.source_positions import (
    COLUMNS,
    DEFINITION,
    position_of_columns,
    position_of_definition,
    recorded_position,
)
from storage_lib.materialized.sources.source_tables import BoundQuery, bound_query, columns_read, definition_of
from storage_lib.schema.options.materialized_table import Freshness, TargetLag

if TYPE_CHECKING:
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.source_offsets import SourceOffsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """What a materialized table does not contain yet.

    ``since_millis`` is the time (epoch milliseconds) of the oldest commit of a source that the table does not contain;
    None if it contains all. ``situation`` is what would have to change before a refresh that failed can succeed: the
    definition, and the newest snapshots of the sources. ``is_new``: it was never refreshed with its present query. All
    of them include the tables that a refresh refreshes first (TARGET_LAG = DOWNSTREAM).
    """

    since_millis: int | None
    situation: tuple[Hashable, ...]
    is_new: bool

    def is_due(self, freshness: Freshness | None, now_millis: int) -> bool:
        """Return whether a refresh should begin now; never for DOWNSTREAM, which readers refresh.

        A table with a freshness waits for half of it, so that several commits need one refresh, which then has the
        other half of the time.
        """
        if isinstance(freshness, TargetLag):
            return False
        if self.is_new:
            return True
        if self.since_millis is None:
            return False
        waits = timedelta(0) if freshness is None else freshness / 2
        return now_millis - self.since_millis >= waits.total_seconds() * 1000


def staleness(table: DynamicTable, definition: MaterializedTableDefinition) -> Staleness:
    """Compare the newest positions of a materialized table with its sources.

    Raises ``NotFoundError`` for a source that does not exist, ``InvalidInputError`` for a query that no longer fits.
    """
    bound = bound_query(table.address, definition)
    own = _of_one(table, definition, bound)
    first = tables_refreshed_first(table, bound.tables)
    if not first:
        return own
    of_first = [_of_one(each, (of := definition_of(each)), bound_query(each.address, of)) for each in first]
    each_since = [each.since_millis for each in (own, *of_first) if each.since_millis is not None]
    return Staleness(
        since_millis=min(each_since, default=None),
        situation=(own.situation, *(each.situation for each in of_first)),
        is_new=own.is_new or any(each.is_new for each in of_first),
    )


def _of_one(table: DynamicTable, definition: MaterializedTableDefinition, bound: BoundQuery) -> Staleness:
    newest = table.inspect.latest_snapshot_id()
    positions = None if newest is None else table.inspect.source_positions(newest)
    oldest: list[int] = []
    snapshots: list[tuple[str, int]] = []
    for name, source in bound.sources.items():
        latest = source.newest()
        snapshots.append((name, latest))
        position = None if positions is None else recorded_position(positions, source.key)
        reached = 0 if position is None else position.snapshot_id
        if latest != reached:
            oldest.append(source.behind_since(reached, latest))
    is_current = positions is not None and _is_current(bound, definition, positions)
    return Staleness(
        since_millis=min(oldest, default=None),
        situation=(definition, table.schema.id, tuple(snapshots)),
        is_new=not is_current,
    )


def _is_current(bound: BoundQuery, definition: MaterializedTableDefinition, positions: SourceOffsets) -> bool:
    """Return whether the table was refreshed with its present query, over the present columns of its sources."""
    if recorded_position(positions, DEFINITION) != position_of_definition(definition):
        return False
    columns = position_of_columns(columns_read(bound))
    return recorded_position(positions, COLUMNS) in (None, columns)
