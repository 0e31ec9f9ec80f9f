"""Columns, rows and hints of an INSERT, in batch and in streaming mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.literal import typed_literal
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_values import parse_boolean
from storage_lib.schema.options.table_options import canonical_key
from storage_lib.spark.types.spark_schema import ROW_POSITION, struct_of
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.query.query_runner import dataframe_of
from storage_lib.sql.query.store_assignment import as_stored
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.row_statements import Insert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.sql.text.source_text import SourceText
    from storage_lib.table.dynamic_table import DynamicTable

CHANGE_TRACKING = "change-tracking"


def written(table: DynamicTable, snapshot: Snapshot | None) -> Result:
    """Return the result of a commit; ``snapshot`` None: nothing was written."""
    if snapshot is None:
        return Result(message=f"{table.name}: nothing to write")
    return Result(
        message=f"{table.name}: snapshot {snapshot.id}", snapshot_id=snapshot.id, row_count=snapshot.delta_record_count
    )


def write_hint(table: DynamicTable, options: Mapping[str, str], known: Sequence[str]) -> dict[str, str]:
    """Return the hint of a write by canonical keys; ``InvalidInputError`` for a key that is not in ``known``."""
    hint = {
        "checkpoint-location" if key == "checkpointLocation" else canonical_key(key): options[key] for key in options
    }
    for key in hint:
        if key not in known:
            message = f"this write of table {table.name} has no hint {key!r}{did_you_mean(key, known)}"
            raise InvalidInputError(message)
    return hint


def boolean_hint(table: DynamicTable, hint: Mapping[str, str], key: str) -> bool | None:
    """Return the value of a boolean hint; None if it is not given. Raises ``InvalidInputError`` for another value."""
    try:
        return None if key not in hint else bool(parse_boolean(hint[key]))
    except ValueError as error:
        message = f"table {table.name}: hint {key} = {hint[key]!r}; {error}"
        raise InvalidInputError(message) from error


def change_tracking_of(state: SessionState, table: DynamicTable, hint: Mapping[str, str]) -> bool | None:
    """Return the change tracking of the hint or the session; None if the table's option applies."""
    given = boolean_hint(table, state.options_in_effect(table, hint), CHANGE_TRACKING)
    return given if CHANGE_TRACKING in hint or given is not table.options.change_tracking else None


def written_columns(table: DynamicTable, statement: Insert) -> list[str]:
    """Return the table's columns that the query fills, in the query's order."""
    known = [field.name for field in table.schema.fields]
    by_lower_case = {name.lower(): name for name in known}
    partition = statement.partition
    fixed = {} if partition is None else partition.values
    for name in (*fixed, *(() if partition is None else partition.dynamic)):
        if name not in table.schema.partition_keys:
            near = did_you_mean(name, table.schema.partition_keys)
            message = f"table {table.name} has no partition column {name!r}{near}"
            raise InvalidInputError(message)
    if not statement.columns:
        return [name for name in known if name not in fixed]
    names = []
    for name in statement.columns:
        found = by_lower_case.get(name.lower())
        if found is None:
            if name in computed_columns(table.schema.options):
                message = f"table {table.name}: column {name!r} is computed from others and can't be written"
                raise InvalidInputError(message)
            message = f"table {table.name} has no column {name!r}{did_you_mean(name, known)}"
            raise InvalidInputError(message)
        if found in names or found in fixed:
            message = f"table {table.name}: column {found!r} is given twice"
            raise InvalidInputError(message)
        names.append(found)
    return names


def with_names_of(statement: Insert, table: DynamicTable, columns: Sequence[str]) -> Insert:
    """Return the statement with the names of the query's columns, if it is BY NAME; others get null."""
    if not statement.by_name:
        return statement
    stored = {field.name for field in table.schema.fields}
    hidden = {table.options.row_kind_field, ROW_POSITION} - stored
    return replace(statement, columns=tuple(each for each in columns if each not in hidden), by_name=False)


def named_by_its_query(state: SessionState, table: DynamicTable, statement: Insert, source: SourceText) -> Insert:
    """Return the statement ``with_names_of`` its query, which is analysed for that."""
    if not statement.by_name:
        return statement
    df = dataframe_of(state, statement.query, source, streaming=False, only_plans=True)
    return with_names_of(statement, table, df.columns)


def as_rows(df: DataFrame, table: DynamicTable, names: Sequence[str], fixed: Mapping[str, object]) -> DataFrame:
    """Return the columns of ``df``, by position, as the table's columns ``names``, with constant columns ``fixed``.

    The columns with the row kind and the row position are found by name, and may be anywhere in ``df``.
    """
    from pyspark.sql import functions as sql

    places = list(names)
    hidden = [
        each for each in (table.options.row_kind_field, ROW_POSITION) if each in df.columns and each not in places
    ]
    for each in sorted(hidden, key=df.columns.index):
        places.insert(df.columns.index(each), each)
    rows = as_stored(df, table, places)
    for field in struct_of(table.schema, list(fixed)).fields:
        value = fixed[field.name]
        typed = None if value is None else typed_literal(value, table.schema.field(field.name))
        rows = rows.withColumn(field.name, sql.lit(typed).cast(field.dataType))
    return rows


def rows_of_insert(table: DynamicTable, statement: Insert, names: Sequence[str]) -> Callable[[DataFrame], DataFrame]:
    fixed = {} if statement.partition is None else statement.partition.values
    return lambda df: as_rows(df, table, names, fixed)
