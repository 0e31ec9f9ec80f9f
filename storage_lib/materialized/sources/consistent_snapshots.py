"""Choose states of a query's sources that were computed from the same states of their own sources.

    orders 7 ── daily 12 (orders 7) ──┐
            └── customers 5 (orders 6) ┴── a query that reads both waits for customers, or reads daily 11 (orders 6)

Positions never decrease from one snapshot to the next, except after a rollback, so stepping back the source that is
ahead finds the newest consistent choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.materialized.sources.own_source import OwnSource

if TYPE_CHECKING:
    from storage_lib.materialized.sources.source import Lineage, Source


def consistent_snapshots(sources: Mapping[str, Source], not_before: Mapping[str, int]) -> dict[str, int] | None:
    """Return the newest states of ``sources`` that agree about every table that several of them derive from.

    A source is read at ``not_before`` or later, if it is given. Returns None if no such states exist.
    """
    chosen = {name: source.newest() for name, source in sources.items()}
    if not any(isinstance(source, OwnSource) and source.table.definition is not None for source in sources.values()):
        return chosen
    lineages = {name: sources[name].lineage(number) for name, number in chosen.items()}
    while (behind := _disagreement(lineages)) is not None:
        upstream, least = behind
        for name, source in sources.items():
            if lineages[name].get(upstream, least) <= least:
                continue
            found = source.agreeing_with(upstream, least, chosen[name], not_before.get(name, 1))
            if found is None:
                return None
            chosen[name], lineages[name] = found
    return chosen


def _disagreement(lineages: Mapping[str, Lineage]) -> tuple[str, int] | None:
    """Return a table of which several states are named, and the least of them."""
    named: dict[str, set[int]] = {}
    for each in lineages.values():
        for upstream, number in each.items():
            named.setdefault(upstream, set()).add(number)
    return next(((upstream, min(ids)) for upstream, ids in named.items() if len(ids) > 1), None)
