"""Choose snapshots of a query's sources that were computed from the same snapshots of their own sources.

    orders 7 ── daily 12 (orders 7) ──┐
            └── customers 5 (orders 6) ┴── a query that reads both waits for customers, or reads daily 11 (orders 6)

Positions never decrease from one snapshot to the next, except after a rollback, so stepping back the source that is
ahead finds the newest consistent choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.materialized.sources.source_positions import recorded_position, source_name
from storage_lib.materialized.sources.source_tables import source_at

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

Lineage = Mapping[str, int]
"""Snapshot ids of a snapshot's direct and indirect sources, by ``source_name``, itself included."""


def consistent_snapshots(sources: Mapping[str, DynamicTable], not_before: Mapping[str, int]) -> dict[str, int] | None:
    """Return the newest snapshot ids of ``sources`` that agree about every table that several of them derive from.

    A source is read at ``not_before`` or later, if it is given. Returns None if no such snapshots exist.
    """
    chosen = {name: table.inspect.latest_snapshot_id() or 0 for name, table in sources.items()}
    if all(table.definition is None for table in sources.values()):
        return chosen
    lineages = {name: lineage(sources[name], snapshot_id) for name, snapshot_id in chosen.items()}
    while (behind := _disagreement(lineages)) is not None:
        upstream, least = behind
        for name, table in sources.items():
            if lineages[name].get(upstream, least) <= least:
                continue
            found = _stepped_back(table, upstream, least, chosen[name], not_before.get(name, 1))
            if found is None:
                return None
            chosen[name], lineages[name] = found
    return chosen


def lineage(table: DynamicTable, snapshot_id: int) -> Lineage:
    """Return the snapshots from which a snapshot was computed, directly and indirectly, and itself.

    Sources that were dropped, and those of expired snapshots, are left out.
    """
    found = {source_name(table): snapshot_id}
    definition = table.definition
    if definition is None or snapshot_id == 0:
        return found
    positions = table.inspect.source_positions(snapshot_id)
    for name in definition.sources:
        try:
            upstream = source_at(table.address, name)
            position = recorded_position(positions, source_name(upstream))
            of_upstream = {} if position is None else lineage(upstream, position.snapshot_id)
        except (NotFoundError, SnapshotExpiredError):
            continue
        for key, each in of_upstream.items():
            found[key] = min(each, found.get(key, each))
    return found


def _disagreement(lineages: Mapping[str, Lineage]) -> tuple[str, int] | None:
    """Return a table of which several snapshots are named, and the least of them."""
    named: dict[str, set[int]] = {}
    for each in lineages.values():
        for upstream, snapshot_id in each.items():
            named.setdefault(upstream, set()).add(snapshot_id)
    return next(((upstream, min(ids)) for upstream, ids in named.items() if len(ids) > 1), None)


def _stepped_back(
    table: DynamicTable, upstream: str, least: int, newest: int, oldest: int
) -> tuple[int, Lineage] | None:
    for snapshot_id in _earlier(table, newest, oldest, least if upstream == source_name(table) else None):
        try:
            found = lineage(table, snapshot_id)
        except (NotFoundError, SnapshotExpiredError):
            return None
        if found.get(upstream, least) <= least:
            return snapshot_id, found
    return None


def _earlier(table: DynamicTable, newest: int, oldest: int, exactly: int | None) -> Iterator[int]:
    """Yield the ids before ``newest``, newest first; only ``exactly`` if the wanted snapshot is known."""
    first = max(oldest, table.inspect.earliest_snapshot_id() or 1)
    if exactly is not None:
        yield from (exactly,) if first <= exactly else ()
        return
    yield from range(newest - 1, first - 1, -1)
