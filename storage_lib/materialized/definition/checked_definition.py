"""A definition that is checked: against the names of its sources, their columns, and the refresh mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra import tables_of
from storage_lib.materialized.sources.catalogs_of_queries import Catalogs, catalogs_of_query
from storage_lib.materialized.sources.source_tables import BoundQuery, bound_query
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.options.materialized_table import (
    Freshness,
    MaterializedTableDefinition,
    RefreshMode,
    parse_refresh_mode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from storage_lib.materialized.engine import AnswerColumn, Engine
    from storage_lib.table.protocol.table_address import TableAddress

_DOTS_OF_CATALOGS = 2
"""Dots in the name of a table of another catalog."""


def definition_for(
    name: str,
    query: str,
    *,
    database: str,
    freshness: Freshness | None,
    refresh_mode: RefreshMode,
    catalogs: Catalogs,
) -> MaterializedTableDefinition:
    """Return the definition of table ``name``, which reads ``catalogs`` of other formats by three parts.

    Raises ``InvalidInputError`` for a query that is invalid or reads ``name``, and as ``catalogs_of_query``.
    """
    named = tables_of(query, database=database)
    sources = tuple(each for each in named if each.count(".") < _DOTS_OF_CATALOGS)
    if name in sources:
        message = f"table {name}: its query reads {name} itself; a materialized table can't be its own source"
        raise InvalidInputError(message)
    return MaterializedTableDefinition(
        query=query.strip(),
        database=database,
        sources=sources,
        freshness=freshness,
        refresh_mode=refresh_mode,
        catalogs=catalogs_of_query(name, [each for each in named if each not in sources], catalogs),
    )


def refresh_mode_of(name: str, given: RefreshMode | str) -> RefreshMode:
    """Parse a refresh mode; ``InvalidInputError`` for an unknown one."""
    try:
        return parse_refresh_mode(given)
    except ValueError as error:
        message = f"table {name}: unknown refresh mode {given!r}; {error}"
        raise InvalidInputError(message) from error


def checked_query(home: TableAddress, definition: MaterializedTableDefinition) -> BoundQuery:
    """Compile a definition; also raise ``InvalidInputError`` if its refresh mode does not fit the query."""
    bound = bound_query(home, definition)
    compiled = bound.compiled
    if definition.refresh_mode is RefreshMode.INCREMENTAL and not (
        compiled.is_incremental and compiled.is_deterministic
    ):
        reason = compiled.reason or "the query is not deterministic"
        message = f"table {home.name}: refresh mode INCREMENTAL does not fit its query: {reason}. Use AUTO or FULL"
        raise InvalidInputError(message)
    return bound


def answer_columns(engine: Engine, name: str, bound: BoundQuery) -> Sequence[AnswerColumn]:
    """Return the columns of the answer, as the engine types them.

    Raises as ``Engine.answer_columns``, and ``InvalidInputError`` for a column that refreshes need for themselves.
    """
    columns = engine.answer_columns(name, bound)
    if any(each.field.name == WEIGHT for each in columns):
        message = f"table {name}: column {WEIGHT} of its query is reserved for refreshes; give it another name"
        raise InvalidInputError(message)
    return columns
