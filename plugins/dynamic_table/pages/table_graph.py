"""The graph of a table: the tables from which its rows are computed, and those that are computed from it.

An edge leads from a source to a materialized table, and says which snapshot of the source the table holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from storage_lib import DynamicTable

__all__ = ["definition_view", "table_graph"]

NODES_MAX = 200


def definition_view(table: DynamicTable) -> dict[str, Any] | None:
    """Return a materialized table's query, freshness in seconds, refresh mode and status; None for other tables.

    ``is_refreshed_by_readers``: it has TARGET_LAG = DOWNSTREAM in place of a freshness.
    """
    from storage_lib.schema.options.materialized_table import TargetLag

    definition = table.definition
    if definition is None:
        return None
    freshness = definition.freshness
    return {
        "query": definition.query,
        "database": definition.database,
        "freshness_seconds": None if isinstance(freshness, TargetLag | None) else freshness.total_seconds(),
        "is_refreshed_by_readers": isinstance(freshness, TargetLag),
        "refresh_mode": str(definition.refresh_mode),
        "status": str(definition.status),
    }


def table_graph(
    name: str, tables: Mapping[str, DynamicTable], shown_error: Callable[[Exception], str]
) -> dict[str, Any]:
    """Return the ``nodes`` and ``edges`` around a table, at most 200 nodes; ``is_cut`` if there are more.

    ``tables`` are the tables of the catalog that could be read. A node has its ``level`` (negative: upstream), the time
    of its newest change, and a materialized one its ``status``. An edge has the snapshots ``held`` and ``newest`` of
    the source, and ``behind_since_millis``, the time of the oldest commit that the table does not hold.
    """
    reads = {each: table.definition.sources for each, table in tables.items() if table.definition is not None}
    read_by: dict[str, list[str]] = {}
    for reader, sources in sorted(reads.items()):
        for source in sources:
            read_by.setdefault(source, []).append(reader)
    levels = {name: 0}
    _walk(levels, name, lambda each: reads.get(each, ()), -1)
    _walk(levels, name, lambda each: read_by.get(each, ()), 1)
    shown = dict(sorted(levels.items(), key=lambda item: (abs(item[1]), item[0]))[:NODES_MAX])
    edges = [(source, reader) for reader in reads if reader in shown for source in reads[reader] if source in shown]
    return {
        "nodes": [_node(each, level, tables.get(each), shown_error) for each, level in sorted(shown.items())],
        "edges": [_edge(source, reader, tables, shown_error) for source, reader in sorted(edges)],
        "is_cut": len(levels) > len(shown),
    }


def _walk(levels: dict[str, int], start: str, following: Callable[[str], Sequence[str]], step: int) -> None:
    """Add the tables that are reached from ``start``, each at its greatest distance within the bound of nodes."""
    layer, level = [start], 0
    while layer and abs(level) <= NODES_MAX:
        level += step
        layer = sorted({each for one in layer for each in following(one)} - {start})
        levels.update(dict.fromkeys(layer, level))


def _node(name: str, level: int, table: DynamicTable | None, shown_error: Callable[[Exception], str]) -> dict[str, Any]:
    node: dict[str, Any] = {"name": name, "level": level}
    if table is None:
        return {**node, "error": "the table does not exist, or can't be read"}
    if table.definition is not None:
        node["status"] = str(table.definition.status)
    try:
        health = table.inspect.health()
    except Exception as error:  # noqa: BLE001  one broken table must not hide the others
        return {**node, "error": shown_error(error)}
    return {**node, "change_millis": health.change_millis, "commit_millis": health.commit_millis}


def _edge(
    source: str, reader: str, tables: Mapping[str, DynamicTable], shown_error: Callable[[Exception], str]
) -> dict[str, Any]:
    edge: dict[str, Any] = {"source": source, "table": reader}
    upstream = tables.get(source)
    if upstream is None:
        return edge
    try:
        held, newest = _positions(tables[reader], upstream)
        since = None if held == newest else _time_of(upstream, (held or 0) + 1)
    except Exception as error:  # noqa: BLE001  likewise
        return {**edge, "error": shown_error(error)}
    return {**edge, "held": held, "newest": newest, "behind_since_millis": since, "is_behind": held != newest}


def _positions(reader: DynamicTable, source: DynamicTable) -> tuple[int | None, int]:
    """Return the snapshot of ``source`` that ``reader`` holds (None: none yet), and the newest one (0: none)."""
    from storage_lib.materialized.sources.source_positions import recorded_position, source_name

    own = reader.inspect.latest_snapshot_id()
    position = None
    if own is not None:
        position = recorded_position(reader.inspect.source_positions(own), source_name(source))
    return (None if position is None else position.snapshot_id), source.inspect.latest_snapshot_id() or 0


def _time_of(source: DynamicTable, snapshot_id: int) -> int | None:
    """Return the time of a snapshot; None if it has expired or was rolled back."""
    from storage_lib.errors import NotFoundError, SnapshotExpiredError

    try:
        return source.inspect.snapshot(snapshot_id).time_millis
    except (NotFoundError, SnapshotExpiredError):
        return None
