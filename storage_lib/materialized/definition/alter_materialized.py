"""Change a materialized table's query, freshness, refresh mode, or whether schedulers refresh it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.materialized.definition.checked_definition import (
    answer_columns,
    checked_query,
    definition_for,
    refresh_mode_of,
)
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_session
from storage_lib.materialized.sources.downstream_tables import refuse_unread
from storage_lib.materialized.sources.kept_snapshots import release_snapshots
from storage_lib.materialized.sources.own_source import source_at
from storage_lib.materialized.sources.source_tables import definition_of, with_columns
from storage_lib.schema.evolution.schema_changes import AddColumn, RemoveOption, SchemaChange, SetOption
from storage_lib.schema.options.materialized_table import (
    PREFIX,
    MaterializedTableDefinition,
    RefreshMode,
    RefreshStatus,
    TargetLag,
    parse_freshness,
)
from storage_lib.schema.types.spark_names import spark_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from storage_lib.materialized.engine import AnswerColumn, Engine
    from storage_lib.materialized.sources.catalogs_of_queries import Catalogs
    from storage_lib.table.dynamic_table import DynamicTable


def suspend(table: DynamicTable) -> DynamicTable:
    """Stop schedulers from refreshing a materialized table; return the altered table.

    ``refresh`` still works. The table's sources no longer keep the snapshots since its last refresh, so the next
    refresh computes the whole query if these have expired.
    """
    altered = _with(table, replace(definition_of(table.refresh()), status=RefreshStatus.SUSPENDED))
    release_snapshots(altered, _existing_sources(altered))
    return altered


def resume(table: DynamicTable) -> DynamicTable:
    """Let schedulers refresh a materialized table again; return the altered table."""
    return _with(table, replace(definition_of(table.refresh()), status=RefreshStatus.ACTIVATED))


def set_freshness(table: DynamicTable, freshness: timedelta | str | None) -> DynamicTable:
    """Set the longest time that a materialized table may lag behind its sources, None: no limit.

    ``freshness`` is given as in ``create_materialized_table``. Returns the altered table. Raises ``InvalidInputError``
    for ``DOWNSTREAM`` if no materialized table of the catalog reads it.
    """
    newest, wanted = table.refresh(), parse_freshness(freshness)
    definition = replace(definition_of(newest), freshness=wanted)
    if wanted is TargetLag.DOWNSTREAM:
        refuse_unread(newest)
    return _with(newest, definition)


def set_refresh_mode(table: DynamicTable, refresh_mode: RefreshMode | str) -> DynamicTable:
    """Set how a materialized table is refreshed: ``auto``, ``incremental`` or ``full``; return the altered table.

    Raises ``InvalidInputError`` for ``incremental`` if the query can't be refreshed incrementally.
    """
    newest = table.refresh()
    definition = replace(definition_of(newest), refresh_mode=refresh_mode_of(table.name, refresh_mode))
    checked_query(newest.address, definition)
    return _with(newest, definition)


def set_query_by(
    engine: Callable[[], Engine],
    table: DynamicTable,
    query: str,
    *,
    database: str | None,
    catalogs: Catalogs | None,
) -> DynamicTable:
    """Set the query of a table as ``storage_lib.spark.set_query`` does; ``engine`` types the answer."""
    newest = table.refresh()
    before = definition_of(newest)
    definition = definition_for(
        table.name,
        query,
        database=database or before.database,
        freshness=before.freshness,
        refresh_mode=before.refresh_mode,
        catalogs=catalogs if catalogs is not None else {each.name: dict(each.options) for each in before.catalogs},
    )
    if catalogs is None:
        secrets = {each.name: each.secrets for each in before.catalogs}
        known = tuple(replace(each, secrets=secrets[each.name]) for each in definition.catalogs)
        definition = replace(definition, catalogs=known)
    definition = replace(definition, status=before.status)
    with catalogs_of_session(catalogs or {}):
        return _with_query(engine, newest, definition)


def _with_query(
    engine: Callable[[], Engine], newest: DynamicTable, definition: MaterializedTableDefinition
) -> DynamicTable:
    """Return the table with the query of a definition."""
    definition = with_columns(definition, checked_query(newest.address, definition))  # before Spark starts
    typing = engine()
    definition = replace(definition, settings=typing.settings())
    columns = answer_columns(typing, newest.name, checked_query(newest.address, definition))
    altered = _with(newest, definition, _added_columns(newest, columns))
    dropped = {name: source for name, source in _existing_sources(newest).items() if name not in definition.sources}
    release_snapshots(altered, dropped)
    return altered


def _added_columns(table: DynamicTable, columns: Sequence[AnswerColumn]) -> list[SchemaChange]:
    known = [(field.name, spark_name(field.type)) for field in table.schema.fields]
    for (name, kind), new in zip(known, columns[: len(known)], strict=False):
        if (name, kind) != (new.field.name, new.type_name):
            message = (
                f"table {table.name}: column {name} {kind} would become {new.field.name} {new.type_name} under the new "
                "query; only columns at the end may be added. Create another table for this query"
            )
            raise InvalidInputError(message)
    if len(columns) < len(known):
        message = (
            f"table {table.name}: the new query lacks column {known[len(columns)][0]}; select it as well, or "
            "create another table for this query"
        )
        raise InvalidInputError(message)
    return [AddColumn(each.field.name, each.field.type) for each in columns[len(known) :]]


def _with(
    table: DynamicTable, definition: MaterializedTableDefinition, changes: list[SchemaChange] | None = None
) -> DynamicTable:
    newest = table.refresh()
    wanted = definition.to_options()
    stored = {key: value for key, value in newest.schema.options.items() if key.startswith(PREFIX)}
    removed = [RemoveOption(key) for key in stored if key not in wanted]
    set_ = [SetOption(key, value) for key, value in wanted.items() if stored.get(key) != value]
    return newest.alter(*(changes or []), *removed, *set_)


def _existing_sources(table: DynamicTable) -> dict[str, DynamicTable]:
    found = {}
    for name in definition_of(table).sources:
        try:
            found[name] = source_at(table.address, name)
        except NotFoundError:
            continue
    return found
