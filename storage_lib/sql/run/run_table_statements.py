"""CREATE and DROP of tables and databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.declaration.table_drift import declared_differences
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from storage_lib.schema.evolution.schema_changes import SetComment
from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.table_schema import typed_columns
from storage_lib.spark.types.spark_schema import arrow_schema_of
from storage_lib.sql.definition.check_virtual_columns import check_virtual_columns
from storage_lib.sql.definition.table_definition import descriptor_of
from storage_lib.sql.query.query_runner import dataframe_of
from storage_lib.sql.run.foreign_tables import FOREIGN_FORMAT, create_foreign_table, drop_sparks, is_sparks
from storage_lib.sql.run.materialized_refusals import refuse_row_change
from storage_lib.sql.run.run_insert import DYNAMIC_OVERWRITE, run_insert
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.parts import Target
from storage_lib.sql.statements.row_statements import Insert
from storage_lib.sql.statements.table_statements import (
    CommentOnTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
)
from storage_lib.sql.text.source_text import SourceText

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.catalog.table_descriptor import TableDescriptor


def run_create_table(state: SessionState, statement: CreateTable, source: SourceText) -> Result:
    """Create the table and its log, and write the rows of the query, if there is one."""
    if FOREIGN_FORMAT in statement.options or statement.using is not None:
        return create_foreign_table(state, statement, source)
    if statement.query is not None and (statement.columns or statement.like is not None):
        message = (
            f"table {statement.table}: AS takes the query's columns; leave the columns and LIKE out. A key may be "
            f"given: CREATE TABLE {statement.table} (PRIMARY KEY (...) NOT ENFORCED) AS SELECT ..."
        )
        raise InvalidInputError(message)
    catalog, name = _home(state, statement)
    if catalog.table_exists(name) and statement.or_replace:
        return _replace_rows(state, statement, source, catalog, name)
    if catalog.table_exists(name) and not statement.if_not_exists:
        message = f"table {name} already exists; drop it first, or write CREATE TABLE IF NOT EXISTS"
        raise AlreadyExistsError(message)
    if statement.query is not None:
        return _create_as(state, statement, source, catalog, name)
    return _created(state, statement, catalog, name)


def _home(state: SessionState, statement: CreateTable) -> tuple[Catalog, str]:
    if statement.temporary:
        return state.temporary.catalog(), state.temporary.full_name(statement.table.parts)
    if len(statement.table.parts) == 1 and state.view(statement.table.parts) is not None:
        message = f"{statement.table} is a temporary view, which would hide the table; drop the view first"
        raise AlreadyExistsError(message)
    return state.catalog, state.full_name(statement.table.parts)


def _created(state: SessionState, statement: CreateTable, catalog: Catalog, name: str) -> Result:
    was_there = catalog.table_exists(name)
    descriptor = descriptor_of(state, statement)
    shown = statement.table if statement.temporary else name
    check_virtual_columns(state.spark, name, typed_columns(descriptor.schema), descriptor.options)
    table = catalog.create_table(name, descriptor, if_not_exists=statement.if_not_exists)
    if statement.temporary:
        state.temporary.add(statement.table.parts[-1])
    if not was_there:
        return Result(message=f"table {shown} created")
    differences = declared_differences(table, descriptor)
    if not differences:
        return Result(message=f"table {shown} already exists")
    warning = f"WARNING: it differs from the declaration and was not changed: {'; '.join(differences)}"
    return Result(message=f"table {shown} already exists; {warning}")


def _create_as(state: SessionState, statement: CreateTable, source: SourceText, catalog: Catalog, name: str) -> Result:
    if catalog.table_exists(name):
        return Result(message=f"table {name} already exists; nothing was written into it")
    if statement.query is None:
        message = "a table without columns needs a query to take them from"
        raise InvalidInputError(message)
    descriptor = _descriptor_of_query(state, statement, dataframe_of(state, statement.query, source))
    check_virtual_columns(state.spark, name, typed_columns(descriptor.schema), descriptor.options)
    catalog.create_table(name, descriptor)
    if statement.temporary:
        state.temporary.add(statement.table.parts[-1])
    try:
        return run_insert(state, Insert(target=Target(table=statement.table), query=statement.query), source)
    except BaseException:
        catalog.drop_table(name, if_exists=True)
        raise


def _descriptor_of_query(state: SessionState, statement: CreateTable, df: DataFrame) -> TableDescriptor:
    # All columns are nullable, as in Spark's CREATE TABLE AS: later rows may have nulls where these have none.
    columns = arrow_schema_of(df.schema.toNullable())
    kind = TableOptions.parse(statement.options).row_kind_field
    schema = pa.schema([column for column in columns if column.name != kind])
    return descriptor_of(state, statement, of_query=schema)


def _replace_rows(
    state: SessionState, statement: CreateTable, source: SourceText, catalog: Catalog, name: str
) -> Result:
    """Replace the rows of an existing table in one commit, so that its log, history and readers stay.

    Raises ``InvalidInputError`` if the statement changes more than the rows, with the differences.
    """
    if statement.if_not_exists:
        message = f"table {name}: OR REPLACE and IF NOT EXISTS contradict each other; leave one of them out"
        raise InvalidInputError(message)
    if statement.query is None:
        message = (
            f"table {name} exists, and CREATE OR REPLACE would drop it with all its rows and its log; DROP TABLE IF "
            "EXISTS it first"
        )
        raise InvalidInputError(message)
    table = catalog.load_table(name)
    refuse_row_change(table, "CREATE OR REPLACE TABLE")
    df = dataframe_of(state, statement.query, source, only_plans=True)
    differences = declared_differences(table, _descriptor_of_query(state, statement, df))
    if differences:
        message = (
            f"table {name} exists, and CREATE OR REPLACE replaces the rows of a table, not its definition: "
            f"{'; '.join(differences)}. ALTER TABLE first, or DROP TABLE it, which also drops its log"
        )
        raise InvalidInputError(message)
    target = Target(table=statement.table, hint={DYNAMIC_OVERWRITE: "false"})
    insert = Insert(target=target, query=statement.query, overwrite=True, by_name=True)
    return run_insert(state, insert, source)


def run_create_database(state: SessionState, statement: CreateDatabase) -> Result:
    """Create a database."""
    properties = {} if statement.comment is None else {"comment": statement.comment}
    state.catalog.create_database(statement.database, properties, if_not_exists=statement.if_not_exists)
    return Result(message=f"database {statement.database} created")


def run_drop_table(state: SessionState, statement: DropTable) -> Result:
    """Drop a table with its log and files. A temporary table hides, and is dropped before, one of the same name."""
    parts = statement.table.parts
    if statement.temporary or (len(parts) == 1 and state.temporary.home_of(parts[0]) is not None):
        dropped = state.temporary.drop(parts[-1], if_exists=statement.if_exists)
        return Result(message=f"temporary table {statement.table} {'dropped' if dropped else 'does not exist'}")
    if state.view(parts) is not None:
        message = f"{statement.table} is a temporary view; write DROP VIEW"
        raise InvalidInputError(message)
    name = state.full_name(parts)
    was_there = state.catalog.table_exists(name)
    if not was_there and state.find_stored_view(parts) is not None:
        message = f"{name} is a view; write DROP VIEW {name}"
        raise InvalidInputError(message)
    if not was_there and is_sparks(state, statement.table):
        return drop_sparks(state, statement.table)
    if was_there and _is_materialized(state.catalog, name):
        message = f"table {name} is a materialized table; write DROP MATERIALIZED TABLE {name}"
        raise InvalidInputError(message)
    try:
        state.catalog.drop_table(name, if_exists=statement.if_exists)
    except NotFoundError:
        raise state.not_found(parts) from None
    return Result(message=f"table {name} {'dropped' if was_there else 'does not exist'}")


def _is_materialized(catalog: Catalog, name: str) -> bool:
    try:
        return catalog.load_table(name).definition is not None
    except StorageError:  # DROP TABLE also drops a damaged table
        return False


def run_drop_database(state: SessionState, statement: DropDatabase) -> Result:
    """Drop a database; with CASCADE, including its tables."""
    if statement.if_exists and not state.catalog.database_exists(statement.database):
        return Result(message=f"database {statement.database} does not exist")
    state.catalog.drop_database(statement.database, if_exists=statement.if_exists, cascade=statement.cascade)
    return Result(message=f"database {statement.database} dropped")


def run_comment_on(state: SessionState, statement: CommentOnTable) -> Result:
    """Change a table's comment."""
    table = state.load(statement.table).alter(SetComment(statement.comment))
    return Result(message=f"table {table.name} altered")
