"""Order in which materialized tables are refreshed: a table after the tables that it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from graphlib import CycleError, TopologicalSorter

from storage_lib.errors import InvalidInputError


def refresh_order(sources: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names in ``sources`` (table -> the tables that it reads), each after those that it reads.

    Raises ``InvalidInputError``, naming the tables, if a table reads itself through others.
    """
    sorter = TopologicalSorter({name: sorted(set(reads) & sources.keys()) for name, reads in sorted(sources.items())})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        message = f"materialized tables read each other in a circle: {' -> '.join(reversed(error.args[1]))}"
        raise InvalidInputError(message) from error
