"""Change a materialized table's query, freshness, refresh mode, or whether schedulers refresh it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.evolution.schema_changes import AddColumn, RemoveOption, SchemaChange, SetOption
from storage_lib.schema.options.materialized_table import (
    PREFIX,
    MaterializedTableDefinition,
    RefreshMode,
    RefreshStatus,
    parse_freshness,
)
from storage_lib.spark.materialized.create_materialized import (
    answer_struct,
    checked_query,
    definition_for,
    refresh_mode_of,
)
from storage_lib.spark.materialized.kept_snapshots import release_snapshots
from storage_lib.spark.materialized.refresh_table import definition_of
from storage_lib.spark.materialized.source_tables import source_at
from storage_lib.spark.runtime.spark_session import session
from storage_lib.spark.types.spark_schema import arrow_schema_of, struct_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

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

    ``freshness`` is given as in ``create_materialized_table``. Returns the altered table.
    """
    return _with(table, replace(definition_of(table.refresh()), freshness=parse_freshness(freshness)))


def set_refresh_mode(table: DynamicTable, refresh_mode: RefreshMode | str) -> DynamicTable:
    """Set how a materialized table is refreshed: ``auto``, ``incremental`` or ``full``; return the altered table.

    Raises ``InvalidInputError`` for ``incremental`` if the query can't be refreshed incrementally.
    """
    newest = table.refresh()
    definition = replace(definition_of(newest), refresh_mode=refresh_mode_of(table.name, refresh_mode))
    checked_query(newest.address, definition)
    return _with(newest, definition)


def set_query(
    table: DynamicTable, query: str, *, spark: SparkSession | None = None, database: str | None = None
) -> DynamicTable:
    """Set the query of a materialized table; the next refresh computes it in full. Returns the altered table.

    The answer has the table's columns in their order and types, and may have further columns at the end, which are
    added. ``database`` is that of names without one (default: as before). The table keeps its key.

    Raises ``InvalidInputError`` for an answer that does not fit, otherwise as ``create_materialized_table``.
    """
    newest = table.refresh()
    before = definition_of(newest)
    definition = definition_for(
        table.name,
        query,
        database=database or before.database,
        freshness=before.freshness,
        refresh_mode=before.refresh_mode,
    )
    definition = replace(definition, status=before.status)
    struct = answer_struct(spark or session(), table.name, checked_query(newest.address, definition))
    altered = _with(newest, definition, _added_columns(newest, struct))
    dropped = {name: source for name, source in _existing_sources(newest).items() if name not in definition.sources}
    release_snapshots(altered, dropped)
    return altered


def _added_columns(table: DynamicTable, struct: StructType) -> list[SchemaChange]:
    known = struct_of(table.schema).fields
    for field, new in zip(known, struct.fields[: len(known)], strict=False):
        if (field.name, field.dataType) != (new.name, new.dataType):
            message = (
                f"table {table.name}: column {field.name} {field.dataType.simpleString()} would become {new.name} "
                f"{new.dataType.simpleString()} under the new query; only columns at the end may be added. Create "
                "another table for this query"
            )
            raise InvalidInputError(message)
    if len(struct.fields) < len(known):
        message = (
            f"table {table.name}: the new query lacks column {known[len(struct.fields)].name}; select it as well, or "
            "create another table for this query"
        )
        raise InvalidInputError(message)
    return [AddColumn(field.name, field.type) for field in list(arrow_schema_of(struct))[len(known) :]]


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
