"""DESCRIBE, SHOW and USE. Results are rows of text."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError, StorageError
from storage_lib.materialized.sources.catalogs_of_queries import catalogs_of_session
from storage_lib.materialized.sources.held_snapshots import held_snapshots
from storage_lib.materialized.sources.lake_source import lake_sources
from storage_lib.materialized.sources.own_source import OwnSource
from storage_lib.schema.filter.literal import typed_literal
from storage_lib.schema.options.event_time import watermarks
from storage_lib.schema.options.metadata_options import metadata_names
from storage_lib.schema.options.nearest import did_you_mean
from storage_lib.schema.options.option_reference import describe_options
from storage_lib.schema.options.table_options import masked
from storage_lib.schema.table_schema import typed_columns
from storage_lib.spark.types.spark_schema import arrow_schema_of
from storage_lib.sql.definition.create_text import create_text_of
from storage_lib.sql.definition.materialized_text import materialized_text_of
from storage_lib.sql.definition.virtual_columns import computed_columns, computed_comment, is_virtual
from storage_lib.sql.query.catalog_tables import struct_of_catalog_table
from storage_lib.sql.query.stored_views import visible_view
from storage_lib.sql.run.view_description import create_view_text, view_columns
from storage_lib.sql.state.result import Result, rows_of
from storage_lib.sql.state.session_catalogs import SessionCatalog
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.parts import PartitionClause
from storage_lib.sql.statements.show_describe import (
    Describe,
    DescribeDatabase,
    ShowColumns,
    ShowCreateTable,
    ShowDatabases,
    ShowOptions,
    ShowPartitions,
    ShowTables,
    Use,
)

if TYPE_CHECKING:
    from storage_lib.catalog.views.view import View
    from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
    from storage_lib.table.dynamic_table import DynamicTable


def run_describe(state: SessionState, statement: Describe) -> Result:
    """Describe the columns of a table, or with EXTENDED all properties of the table or of one partition."""
    view = state.view(statement.table.parts)
    if view is not None:
        message = f"{statement.table} is a temporary view; SELECT * FROM {statement.table} LIMIT 0 shows its columns"
        raise InvalidInputError(message)
    catalog = state.session_catalog(statement.table.parts)
    if catalog is not None:
        return _described_elsewhere(catalog, statement)
    stored = visible_view(state, statement.table.parts)
    if stored is not None:
        return _described_view(state, stored, statement)
    table = state.load(statement.table)
    if not statement.extended:
        return Result(rows=rows_of(("name", "type", "nullable", "key", "comment"), _columns(table)))
    spec = None if statement.partition is None else static_values(table, statement.partition)
    lines = [*table.describe(spec).items()]
    if table.definition is not None:
        lines += _source_lines(state, table, table.definition)
    return Result(rows=rows_of(("field", "value"), list(lines)))


def _described_view(state: SessionState, view: View, statement: Describe) -> Result:
    if statement.partition is not None:
        message = f"{view.name} is a view, which has no partitions"
        raise InvalidInputError(message)
    if not statement.extended:
        return Result(rows=rows_of(("name", "type", "nullable", "key", "comment"), view_columns(state, view)))
    lines = [("name", view.name), ("type", "view"), ("query", view.query)]
    lines += [] if view.comment is None else [("comment", view.comment)]
    return Result(rows=rows_of(("field", "value"), list(lines)))


def _described_elsewhere(catalog: SessionCatalog, statement: Describe) -> Result:
    if statement.extended:
        message = f"{statement.table} is a table of catalog {catalog.name}, of which DESCRIBE shows the columns only"
        raise InvalidInputError(message)
    _, database, table = statement.table.parts
    struct = struct_of_catalog_table(catalog, database, table)
    types = typed_columns(arrow_schema_of(struct))
    lines: list[tuple[str | None, ...]] = [
        (name, str(type_.with_nullable(nullable=True)), str(field.nullable).lower(), "", None)
        for field, (name, type_) in zip(struct.fields, types, strict=True)
    ]
    return Result(rows=rows_of(("name", "type", "nullable", "key", "comment"), lines))


def _source_lines(
    state: SessionState, table: DynamicTable, definition: MaterializedTableDefinition
) -> list[tuple[str, str]]:
    names = definition.sources
    there = {name: OwnSource(state.catalog.load_table(name)) for name in names if state.catalog.table_exists(name)}
    held = held_snapshots(table, there)
    lines = [(f"source {name}", held.get(name, "does not exist")) for name in names]
    for catalog in definition.catalogs:
        lines.append((f"catalog {catalog.name}", ", ".join(f"{key} = {value}" for key, value in catalog.options)))
        try:
            with catalogs_of_session(state.lake_options()):
                of_catalog = held_snapshots(table, lake_sources(table.name, [catalog]))
        except StorageError as error:
            of_catalog = {f"{catalog.name}.{name}": f"can't be read: {error}" for name in catalog.tables}
        lines += [(f"source {name}", text) for name, text in of_catalog.items()]
    return lines


def static_values(table: DynamicTable, partition: PartitionClause) -> dict[str, object]:
    """Return the values of a partition clause, possibly of only some partition columns.

    Raises ``InvalidInputError`` for a column without a value or one that is not a partition column.
    """
    if partition.dynamic:
        message = (
            f"table {table.name}: PARTITION ({partition.dynamic[0]}) lacks a value; write {partition.dynamic[0]} = ..."
        )
        raise InvalidInputError(message)
    for name in partition.values:
        if name not in table.schema.partition_keys:
            message = (
                f"table {table.name} has no partition column {name!r}{did_you_mean(name, table.schema.partition_keys)}"
            )
            raise InvalidInputError(message)
    return dict(partition.values)


def _columns(table: DynamicTable) -> list[tuple[str | None, ...]]:
    lines: list[tuple[str | None, ...]] = []
    late, metadata = watermarks(table.schema.options), metadata_names(table.schema.options)
    for field in table.schema.fields:
        roles = ["primary key"] * (field.name in table.schema.primary_keys)
        roles += ["partition"] * (field.name in table.schema.partition_keys)
        roles += [f"watermark {late[field.name]} behind"] if field.name in late else []
        roles += [f"metadata {metadata[field.name]}"] if field.name in metadata else []
        type_ = str(field.type.with_nullable(nullable=True))
        lines.append((field.name, type_, str(field.type.nullable).lower(), ", ".join(roles), field.description))
    for name, expression in computed_columns(table.schema.options).items():
        comment = computed_comment(table.schema.options, name)
        lines.append((name, f"AS ({expression})", "true", "computed", comment))
    return lines


def run_describe_database(state: SessionState, statement: DescribeDatabase) -> Result:
    """Show a database's properties, and its numbers of tables and views."""
    if statement.database not in state.catalog.list_databases():
        raise no_database(state, statement.database)
    properties = state.catalog.database_properties(statement.database)
    lines = [("name", statement.database), *properties.items()]
    lines.append(("tables", str(len(state.catalog.list_tables(statement.database)))))
    lines.append(("views", str(len(state.catalog.views.names(statement.database)))))
    return Result(rows=rows_of(("field", "value"), list(lines)))


def no_database(state: SessionState, database: str) -> NotFoundError:
    """Return the error for a missing database, with the nearest name."""
    return NotFoundError(f"database {database} does not exist{did_you_mean(database, state.catalog.list_databases())}")


def run_show_databases(state: SessionState, statement: ShowDatabases) -> Result:
    """List the databases, of the session's own catalog or of another one that it opened."""
    if statement.catalog is not None and statement.catalog != state.catalog_name:
        return _listed("database", state.opened_catalog(statement.catalog).databases(), statement.pattern)
    return _listed("database", state.catalog.list_databases(), statement.pattern)


def run_show_tables(state: SessionState, statement: ShowTables) -> Result:
    """List the tables and views of a database, and the session's temporary tables and views."""
    if statement.catalog is not None and statement.catalog != state.catalog_name:
        return _tables_of_catalog(state, statement.catalog, statement)
    database = statement.database or state.database
    if statement.database is not None and database not in state.catalog.list_databases():
        raise no_database(state, database)
    pattern = statement.pattern
    tables = [*state.catalog.list_tables(database), *state.catalog.views.names(database)]
    lines: list[tuple[str | None, ...]] = [(database, name.partition(".")[2], "false") for name in tables]
    lines += [("", name, "true") for name in [*state.temporary.names(), *sorted(state.views)]]
    found = [line for line in lines if matches(str(line[1]), pattern)]
    message = "" if lines else _where_tables_may_be(state, database)
    return Result(rows=rows_of(("database", "table", "temporary"), found), message=message)


def _tables_of_catalog(state: SessionState, catalog: str, statement: ShowTables) -> Result:
    database = statement.database or ""
    lines: list[tuple[str | None, ...]] = [
        (database, name, "false")
        for name in state.opened_catalog(catalog).tables(database)
        if matches(name, statement.pattern)
    ]
    return Result(rows=rows_of(("database", "table", "temporary"), lines))


def _where_tables_may_be(state: SessionState, database: str) -> str:
    """Return a message that names the other databases, for an empty current database; empty if there are none."""
    others = [name for name in state.catalog.list_databases() if name != database]
    if not others:
        return ""
    return f"database {database} has no tables; other databases: {', '.join(others)} (USE or SHOW TABLES IN)"


def run_show_create(state: SessionState, statement: ShowCreateTable) -> Result:
    """Show the statement that creates a table, also a materialized one, or a view of the catalog."""
    stored = visible_view(state, statement.table.parts)
    if stored is not None:
        return Result(rows=rows_of(("statement",), [(create_view_text(stored),)]))
    table = state.load(statement.table)
    text = create_text_of(table) if table.definition is None else materialized_text_of(table)
    return Result(rows=rows_of(("statement",), [(text,)]))


def run_show_partitions(state: SessionState, statement: ShowPartitions) -> Result:
    """List partitions, one per row, as ``dt=2024-05-14/hr=3``."""
    table = state.load(statement.table)
    if not table.schema.partition_keys:
        message = f"table {table.name} is not partitioned"
        raise InvalidInputError(message)
    wanted = {} if statement.partition is None else static_values(table, statement.partition)
    keys = table.schema.partition_keys
    typed = {
        key: value if value is None else typed_literal(value, table.schema.field(key)) for key, value in wanted.items()
    }
    rows = table.inspect.partition_values().to_pylist()
    found = [row for row in rows if all(row[key] == value for key, value in typed.items())]
    default = table.options.partition_default_name
    names = ["/".join(f"{key}={default if row[key] is None else row[key]}" for key in keys) for row in found]
    return _listed("partition", sorted(names), None)


def run_show_columns(state: SessionState, statement: ShowColumns) -> Result:
    """List the names of a table's columns, computed ones last, or of a view's."""
    stored = visible_view(state, statement.table.parts)
    if stored is not None:
        return _listed("column", [str(name) for name, *_ in view_columns(state, stored)], None)
    table = state.load(statement.table)
    names = [field.name for field in table.schema.fields]
    return _listed("column", [*names, *computed_columns(table.schema.options)], None)


def run_show_options(state: SessionState, statement: ShowOptions) -> Result:
    """List all known table options, or the options of one table with secrets masked."""
    if statement.table is None:
        lines: list[tuple[str | None, ...]] = [
            (each.option, each.default, each.meaning)
            for each in describe_options()
            if matches(each.option, statement.pattern)
        ]
        return Result(rows=rows_of(("option", "default", "meaning"), lines))
    options = masked(state.load(statement.table).schema.options)
    found = [(key, value) for key, value in sorted(options.items()) if matches(key, statement.pattern)]
    return Result(rows=rows_of(("option", "value"), [line for line in found if not is_virtual(line[0])]))


def run_use(state: SessionState, statement: Use) -> Result:
    """Make a database the current one, in which names without a database are resolved."""
    if statement.database not in (state.database, *state.catalog.list_databases()):
        raise no_database(state, statement.database)
    state.use(statement.database)
    return Result(message=f"database {statement.database}")


def _listed(column: str, names: Iterable[str], pattern: str | None) -> Result:
    return Result(rows=rows_of((column,), [(name,) for name in names if matches(name, pattern)]))


def matches(name: str, pattern: str | None) -> bool:
    """Return whether a name matches a pattern of Spark (``*``, ``|``) or Flink (``%``, ``_``), ignoring case."""
    if pattern is None:
        return True
    if "%" in pattern:
        like = "".join(".*" if each == "%" else "." if each == "_" else re.escape(each) for each in pattern)
        return re.fullmatch(like, name, re.IGNORECASE) is not None
    return any(fnmatch.fnmatchcase(name.lower(), each.strip().lower()) for each in pattern.split("|"))
