"""The tables that a materialized table's query reads, and the query compiled against them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.materialized.algebra import CompiledQuery, SourceTable, compile_query
from storage_lib.materialized.sources.lake_source import lake_sources
from storage_lib.materialized.sources.own_source import OwnSource, source_at
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.options.value_settings import unusual_reading
from storage_lib.schema.types.spark_names import spark_name

if TYPE_CHECKING:
    from storage_lib.materialized.sources.source import Source
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.schema.table_schema import DataField
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.protocol.table_address import TableAddress

_COMPILED_QUERIES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundQuery:
    """A compiled query with its sources, by name, under their newest schemas, which are ``described``.

    A table of the query's catalog is named ``database.table``, one of another catalog ``catalog.database.table``.
    ``settings`` are those of Spark under which it is computed; None: those of the session that computes it.
    """

    compiled: CompiledQuery
    sources: Mapping[str, Source]
    described: tuple[SourceTable, ...]
    settings: tuple[tuple[str, str], ...] | None = None

    @property
    def tables(self) -> dict[str, DynamicTable]:
        """The sources that are tables of the query's catalog."""
        return {name: source.table for name, source in self.sources.items() if isinstance(source, OwnSource)}


def definition_of(table: DynamicTable) -> MaterializedTableDefinition:
    """Return the table's query; ``InvalidInputError`` for an ordinary table."""
    definition = table.definition
    if definition is None:
        message = (
            f"table {table.name} is not a materialized table; create one with create_materialized_table or "
            "CREATE MATERIALIZED TABLE"
        )
        raise InvalidInputError(message)
    return definition


def bound_query(home: TableAddress, definition: MaterializedTableDefinition, *, has_names: bool = True) -> BoundQuery:
    """Load the sources of a query and compile it; ``has_names`` as for ``compile_query``.

    Raises ``NotFoundError`` for a source that does not exist, ``InvalidInputError`` for a query that does not fit the
    sources' columns.
    """
    sources: dict[str, Source] = {}
    for name in definition.sources:
        try:
            sources[name] = OwnSource(source_at(home, name))
        except NotFoundError as error:
            message = f"table {home.name} reads {name} in its query: {error}"
            raise NotFoundError(message) from error
    sources |= lake_sources(home.name, definition.catalogs)
    recorded = dict(definition.columns or ())
    described = tuple(source_table(name, table, recorded.get(name)) for name, table in sources.items())
    refusal = unusual_reading(definition.settings or ())
    compiled = _compiled(definition.query, described, definition.database, refusal, has_names=has_names)
    for name, columns in compiled.needed.items():
        if reserved := next((each for each in columns if each.lower() == WEIGHT), None):
            message = f"table {home.name} reads column {reserved} of {name}; refreshes use that name, so rename it"
            raise InvalidInputError(message)
    return BoundQuery(compiled=compiled, sources=sources, described=described, settings=definition.settings)


@lru_cache(maxsize=_COMPILED_QUERIES_MAX)
def _compiled(
    query: str, described: tuple[SourceTable, ...], database: str, refusal: str | None, *, has_names: bool
) -> CompiledQuery:
    """Compile a query once for all refreshes under the same columns of its sources: that takes tens of milliseconds."""
    return compile_query(query, described, database=database, has_names=has_names, refusal=refusal)


def source_table(name: str, table: DynamicTable | Source, only: Collection[str] | None = None) -> SourceTable:
    """Return the columns and the key of a table for the compiler; ``only`` these columns, None: all."""
    return SourceTable(
        name=name,
        columns=tuple(
            (field.name, f"{spark_name(field.type)}{'' if field.type.nullable else ' NOT NULL'}")
            for field in table.schema.fields
            if only is None or field.name in only
        ),
        primary_key=table.schema.primary_keys if only is None or {*table.schema.primary_keys} <= {*only} else (),
    )


def with_columns(definition: MaterializedTableDefinition, bound: BoundQuery) -> MaterializedTableDefinition:
    """Return a definition that records the columns for which ``*`` stands in its query, if it has one."""
    if not bound.compiled.has_star:
        return definition
    columns = tuple((each.name, tuple(name for name, _ in each.columns)) for each in bound.described)
    return replace(definition, columns=columns)


def columns_read(bound: BoundQuery) -> dict[str, list[DataField]]:
    """Return the columns that a query reads, by source."""
    return {
        name: [source.schema.field(column) for column in bound.compiled.needed.get(name, ())]
        for name, source in bound.sources.items()
    }


def needed_columns(compiled: CompiledQuery, name: str, source: DynamicTable | Source) -> tuple[str, ...]:
    """Return the columns of a source that a query reads, in the query's order; one column if it only counts rows."""
    return tuple(compiled.needed.get(name, ())) or tuple(field.name for field in source.schema.fields)[:1]
