"""Tables with TARGET_LAG = DOWNSTREAM: a refresh of a table that reads them refreshes them first.

    orders ── lines (DOWNSTREAM) ── items (DOWNSTREAM) ── daily (FRESHNESS 5 minutes)

A refresh of ``daily`` refreshes ``lines``, ``items`` and ``daily``. Nothing else refreshes the first two, so ``daily``
also lags behind ``orders`` by what they have not read yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.materialized.sources.own_source import source_at
from storage_lib.materialized.sources.refresh_order import refresh_order

if TYPE_CHECKING:
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable

REMEDY = "create a materialized table that reads it first, or give it FRESHNESS = INTERVAL '5' MINUTE"


def tables_refreshed_first(table: DynamicTable, sources: Mapping[str, DynamicTable]) -> list[DynamicTable]:
    """Return the tables that a refresh of ``table`` refreshes first, each after those that it reads.

    These are its ``sources`` with TARGET_LAG = DOWNSTREAM, and those that they read in turn. Suspended tables, and what
    only they read, are left out. Raises ``InvalidInputError`` for a circle of tables, ``NotFoundError`` for a source of
    a source that does not exist.
    """
    reads: dict[str, Collection[str]] = {table.name: tuple(sources)}
    found: dict[str, DynamicTable] = {}
    pending = list(sources.items())
    while pending:
        name, source = pending.pop()
        definition = source.definition
        if name in found or definition is None or not definition.is_refreshed_by_readers:
            continue
        found[name], reads[name] = source, definition.sources
        # The table itself is among them in a circle, which its order refuses.
        pending += [(each, source_at(source.address, each)) for each in definition.sources if each not in reads]
    return [found[name] for name in refresh_order(reads) if name in found] if found else []


def is_read(name: str, definitions: Iterable[MaterializedTableDefinition | None]) -> bool:
    """Return whether one of these materialized tables reads table ``name``; None is an ordinary table."""
    return any(definition is not None and name in definition.sources for definition in definitions)


def refuse_unread(table: DynamicTable) -> None:
    """Raise ``InvalidInputError`` if no materialized table of the catalog reads ``table``: nothing would refresh it."""
    catalog = open_catalog(table.address.warehouse, table.address.options)
    for name in catalog.list_tables():
        try:
            if is_read(table.name, [catalog.load_table(name).definition]):
                return
        except NotFoundError:
            # Dropped since it was listed.
            continue
    raise unread_error(table.name)


def unread_error(name: str) -> InvalidInputError:
    """Return the error about a table with TARGET_LAG = DOWNSTREAM that no materialized table reads."""
    return InvalidInputError(
        f"table {name}: TARGET_LAG = DOWNSTREAM, but no materialized table reads it, so only a request would refresh "
        f"it; {REMEDY}"
    )
