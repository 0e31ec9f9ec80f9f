"""CREATE, ALTER, DROP and SHOW of materialized tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.materialized.definition.alter_materialized import (
    resume,
    set_freshness,
    set_refresh_mode,
    suspend,
)
from storage_lib.materialized.plan.refresh_result import RefreshResult, RefreshWork
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_session
from storage_lib.materialized.sources.kept_snapshots import release_snapshots
from storage_lib.schema.options.materialized_table import TargetLag
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_precedence import merged_options
from storage_lib.spark.engine.create_materialized_table import create_materialized_table
from storage_lib.spark.engine.refresh import refresh
from storage_lib.spark.engine.set_query import set_query
from storage_lib.sql.definition.materialized_text import freshness_text, materialized_text_of
from storage_lib.sql.query.definition_query import definition_query
from storage_lib.sql.run.run_show_describe import matches, no_database, static_values
from storage_lib.sql.state.definition_options import refuse_definition_options
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.spark_words import errors_in_words
from storage_lib.sql.statements.materialized_statements import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    DropMaterializedTable,
    Refresh,
    Resume,
    SetFreshness,
    SetQuery,
    SetRefreshMode,
    ShowCreateMaterializedTable,
    ShowMaterializedTables,
    Suspend,
)
from storage_lib.sql.text.qualified_query import qualified

if TYPE_CHECKING:
    from storage_lib.sql.state.session_state import SessionState
    from storage_lib.sql.statements.parts import NamedTable, PartitionClause
    from storage_lib.sql.text.source_text import SourceText
    from storage_lib.table.dynamic_table import DynamicTable


_REMARK = "a refresh of a materialized table that reads it refreshes it first; until there is one, nothing does"


def run_create_materialized(state: SessionState, statement: CreateMaterializedTable, source: SourceText) -> Result:
    """Create the table, and refresh it once; drop it again if that refresh fails."""
    name = _new_name(state, statement.table)
    if state.catalog.table_exists(name):
        if statement.if_not_exists:
            return _existing(state, statement, state.catalog.load_table(name))
        message = f"table {name} already exists; drop it first, or write CREATE MATERIALIZED TABLE IF NOT EXISTS"
        raise AlreadyExistsError(message)
    refuse_definition_options(f"table {name}", statement.options)
    query = definition_query(state, statement.query, source, table=name, reads_lakes=True)
    _check_keys(name, statement, query.columns)
    with errors_in_words():
        table = create_materialized_table(
            state.catalog,
            name,
            query.text,
            spark=state.spark,
            primary_key=statement.primary_key or None,
            partition_keys=statement.partition_by,
            freshness=statement.freshness,
            refresh_mode=statement.refresh_mode,
            options=merged_options(table=statement.options, session=state.settings.table_options),
            comment=statement.comment,
            database=state.database,
            catalogs=state.lake_options(),
        )
    try:
        done = _refreshed(state, table, None)
    except BaseException:
        _drop(state, table)
        raise
    remark = "" if statement.freshness is not TargetLag.DOWNSTREAM else f"; {_REMARK}"
    return Result(
        message=f"materialized table {name} created, rows written: {done.row_count or 0}{remark}",
        snapshot_id=done.snapshot_id,
        row_count=done.row_count,
    )


def _existing(state: SessionState, statement: CreateMaterializedTable, table: DynamicTable) -> Result:
    """Report a table that exists; warn if its definition differs from the statement's."""
    message, definition = f"table {table.name} already exists", table.definition
    if definition is None:
        return Result(message=f"{message}; WARNING: it is not a materialized table and was not changed")
    different = {
        "query": definition.query != qualified(statement.query, state.database, state.catalogs),
        "freshness": definition.freshness != statement.freshness,
        "refresh mode": definition.refresh_mode != statement.refresh_mode,
    }
    if not any(different.values()):
        return Result(message=message)
    names = ", ".join(name for name, is_different in different.items() if is_different)
    return Result(message=f"{message}; WARNING: it differs from the statement and was not changed: {names}")


def _check_keys(name: str, statement: CreateMaterializedTable, columns: Sequence[str]) -> None:
    for role, keys in (("PRIMARY KEY", statement.primary_key), ("PARTITIONED BY", statement.partition_by)):
        for key in keys:
            if key not in columns:
                message = (
                    f"table {name}: {role} ({', '.join(keys)}): the query has no column {key!r}"
                    f"{did_you_mean(key, columns)}"
                )
                raise InvalidInputError(message)


def _new_name(state: SessionState, named: NamedTable) -> str:
    if len(named.parts) == 1:
        if state.view(named.parts) is not None:
            message = f"{named} is a temporary view, which would hide the table; drop the view first"
            raise AlreadyExistsError(message)
        if state.temporary.home_of(named.parts[0]) is not None:
            message = f"{named} is a temporary table, which would hide the table; drop it first"
            raise AlreadyExistsError(message)
    return state.full_name(named.parts)


def run_alter_materialized(state: SessionState, statement: AlterMaterializedTable, source: SourceText) -> Result:
    """Refresh the table, or change its definition."""
    table = _materialized(state, statement.table)
    with errors_in_words(), catalogs_of_session(state.lake_options()):
        match statement.change:
            case Refresh(partition=partition):
                return _refreshed(state, table, partition)
            case Suspend():
                suspend(table)
                return Result(message=f"materialized table {table.name} suspended")
            case Resume():
                resume(table)
                return Result(message=f"materialized table {table.name} resumed")
            case SetFreshness(freshness=freshness):
                set_freshness(table, freshness)
                return Result(message=f"materialized table {table.name}: freshness {freshness_text(freshness)}")
            case SetRefreshMode(refresh_mode=mode):
                set_refresh_mode(table, mode)
                return Result(message=f"materialized table {table.name}: refresh mode {mode.upper()}")
            case SetQuery(query=query):
                text = definition_query(state, query, source, table=table.name, reads_lakes=True).text
                set_query(table, text, spark=state.spark, database=state.database, catalogs=state.lake_options())
                return Result(
                    message=f"materialized table {table.name} has a new query; the next refresh is a full one"
                )


def _refreshed(state: SessionState, table: DynamicTable, partition: PartitionClause | None) -> Result:
    values = None if partition is None else static_values(table, partition)
    with errors_in_words(), catalogs_of_session(state.lake_options()):
        done = refresh(state.spark, table, partition=values)
    if done.mode is RefreshWork.NONE:
        return Result(message=f"{table.name}: nothing to refresh: {done.reason}{_first(done)}")
    reason = f" ({done.reason})" if done.mode is RefreshWork.FULL else ""
    if done.snapshot_id is None:
        return Result(message=f"{table.name}: {done.mode} refresh{reason}, nothing to write{_first(done)}")
    read = ", ".join(f"{source} {rows}" for source, rows in done.rows_read.items())
    return Result(
        message=f"{table.name}: {done.mode} refresh{reason}, snapshot {done.snapshot_id}, rows written: "
        f"{done.rows_written}, rows read: {read or 'none'}{_first(done)}",
        snapshot_id=done.snapshot_id,
        row_count=done.rows_written,
    )


def _first(done: RefreshResult) -> str:
    """Return a remark about the tables that were refreshed first."""
    names = ", ".join(
        name if each.snapshot_id is None else f"{name} (snapshot {each.snapshot_id})"
        for name, each in done.refreshed_first.items()
    )
    return f"; refreshed first: {names}" if names else ""


def run_drop_materialized(state: SessionState, statement: DropMaterializedTable) -> Result:
    """Drop a materialized table with its log and files."""
    name = state.full_name(statement.table.parts)
    if state.catalog.table_exists(name):
        _drop(state, _materialized(state, statement.table))
        return Result(message=f"materialized table {name} dropped")
    try:
        state.catalog.drop_table(name, if_exists=statement.if_exists)  # completes an interrupted drop
    except NotFoundError:
        raise state.not_found(statement.table.parts) from None
    return Result(message=f"materialized table {name} does not exist")


def _drop(state: SessionState, table: DynamicTable) -> None:
    """Drop a materialized table, and let the snapshots of its sources expire that it kept for its next refresh."""
    names = () if table.definition is None else table.definition.sources
    there = {name: state.catalog.load_table(name) for name in names if state.catalog.table_exists(name)}
    release_snapshots(table, there)
    state.catalog.drop_table(table.name, if_exists=True)


def run_show_materialized(state: SessionState, statement: ShowMaterializedTables) -> Result:
    """List the materialized tables of a database, with how and how often they are refreshed."""
    database = statement.database or state.database
    if statement.database is not None and database not in state.catalog.list_databases():
        raise no_database(state, database)
    lines: list[tuple[str | None, ...]] = []
    for name in state.catalog.list_tables(database):
        plain = name.partition(".")[2]
        definition = state.catalog.load_table(name).definition if matches(plain, statement.pattern) else None
        if definition is not None:
            freshness = None if definition.freshness is None else freshness_text(definition.freshness)
            lines.append((database, plain, freshness, definition.refresh_mode.upper(), definition.status.upper()))
    return Result(rows=rows_of(("database", "table", "freshness", "refresh_mode", "status"), lines))


def run_show_create_materialized(state: SessionState, statement: ShowCreateMaterializedTable) -> Result:
    """Show the CREATE MATERIALIZED TABLE statement of a table."""
    return Result(rows=rows_of(("statement",), [(materialized_text_of(state.load(statement.table)),)]))


def _materialized(state: SessionState, named: NamedTable) -> DynamicTable:
    """Load a materialized table; ``InvalidInputError`` for an ordinary one."""
    table = state.load(named)
    if table.definition is None:
        message = f"table {table.name} is not a materialized table; SHOW MATERIALIZED TABLES lists those of a database"
        raise InvalidInputError(message)
    return table
