"""ALTER TABLE: atomic schema changes, and rewrites and compactions that block until they are done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.evolution.alter_schema import alter_schema
from storage_lib.schema.evolution.schema_changes import (
    AddColumn,
    AlterType,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetComment,
    SetNullable,
    SetOption,
    type_of,
)
from storage_lib.schema.options.metadata_options import metadata_key
from storage_lib.schema.options.nearest import did_you_mean, nearest
from storage_lib.schema.options.table_options import canonical_key, option_keys
from storage_lib.schema.placing.layout import LAYOUT_OPTIONS
from storage_lib.spark.compaction.distributed_compaction import compact
from storage_lib.sql.definition.check_virtual_columns import check_virtual_columns
from storage_lib.sql.definition.virtual_columns import computed_columns
from storage_lib.sql.run.insert_rows import written
from storage_lib.sql.run.materialized_refusals import refuse_column_change, refuse_row_change
from storage_lib.sql.run.run_show_describe import static_values
from storage_lib.sql.state.definition_options import refuse_definition_options
from storage_lib.sql.state.result import Result
from storage_lib.sql.state.session_state import SessionState
from storage_lib.sql.statements.alter_statements import (
    AddColumns,
    AddPrimaryKey,
    AlterOneColumn,
    AlterTable,
    Compact,
    DropColumns,
    DropPartitions,
    ModifyColumns,
    RenameOneColumn,
    RenameTable,
    ResetOptions,
    SetOptions,
    TableChange,
)
from storage_lib.sql.statements.table_statements import ColumnDefinition

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def run_alter_table(state: SessionState, statement: AlterTable) -> Result:  # noqa: PLR0911  one line a change
    """Apply one change, completely or not at all."""
    try:
        table = state.load(statement.table)
    except NotFoundError:
        if statement.if_exists:
            return Result(message=f"table {statement.table} does not exist")
        raise
    _refuse_for_materialized(table, statement.change)
    match statement.change:
        case RenameTable():
            return _rename(state, statement, table)
        case Compact(partition=partition):
            spec = None if partition is None else static_values(table, partition)
            return written(table, compact(state.spark, table, partition=spec))
        case DropPartitions():
            return _drop_partitions(table, statement.change)
        case AddPrimaryKey(columns=columns):
            _refuse_unknown(table, columns)
            return _rewritten(table, primary_key=columns)
        case SetOptions(options=options) if _layout_in(table, options):
            return _rewritten(table, options=options)
        case ResetOptions(keys=keys) if _layout_in(table, dict.fromkeys(keys)):
            return _rewritten(table, options=dict.fromkeys(keys))
        case _:
            changes = _changes(table, statement)
            _check_what_is_computed(state, table, changes)
            altered = table.alter(*changes)
            return Result(message=f"table {altered.name} altered")


def _refuse_for_materialized(table: DynamicTable, change: TableChange) -> None:
    """Refuse a change that would make a materialized table differ from its query, or change its definition."""
    match change:
        case SetOptions(options=options):
            refuse_definition_options(f"table {table.name}", options)
        case ResetOptions(keys=keys):
            refuse_definition_options(f"table {table.name}", keys)
        case DropPartitions():
            refuse_row_change(table, "DROP PARTITION")
        case RenameTable() | Compact():
            return
        case AlterOneColumn(comment=comment) if comment is not None:
            return
        case _:
            refuse_column_change(table)


def _check_what_is_computed(state: SessionState, table: DynamicTable, changes: Sequence[SchemaChange]) -> None:
    try:
        to_be = alter_schema(table.schema, changes, time_millis=table.schema.time_millis)
    except InvalidInputError:
        return  # applying the change reports what is wrong with it
    fields = [(field.name, field.type) for field in to_be.fields]
    check_virtual_columns(state.spark, table.name, fields, to_be.options)


def _changes(table: DynamicTable, statement: AlterTable) -> list[SchemaChange]:  # noqa: PLR0911  one line a change
    match statement.change:
        case AddColumns(columns=columns):
            return [change for each in columns for change in (_added(table, each), *_metadata_set(each))]
        case DropColumns(columns=columns):
            _refuse_unknown(table, columns)
            return [DropColumn(each) for each in columns]
        case RenameOneColumn(column=column, new_name=new_name):
            _refuse_unknown(table, [column])
            return [RenameColumn(column, new_name)]
        case ModifyColumns(columns=columns):
            _refuse_unknown(table, [each.name for each in columns])
            return [change for each in columns for change in _modified(table, each)]
        case AlterOneColumn():
            _refuse_unknown(table, [statement.change.column])
            return _altered(statement.change)
        case SetOptions(options=options):
            return [SetOption(canonical_key(key), value) for key, value in options.items()]
        case ResetOptions(keys=keys):
            return [RemoveOption(_known_option(table, key)) for key in keys]
        case _:
            message = f"table {table.name}: {type(statement.change).__name__} does not change its schema"
            raise InvalidInputError(message)


def _known_option(table: DynamicTable, option: str) -> str:
    """Return an option's canonical key; ``InvalidInputError`` with the nearest key if it looks like a typo."""
    key = canonical_key(option)
    near = None if key in table.schema.options or key in option_keys() else nearest(key, option_keys())
    if near is not None:
        message = f"table {table.name}: unknown option {option!r}; did you mean {near!r}?"
        raise InvalidInputError(message)
    return key


def _refuse_unknown(table: DynamicTable, columns: Sequence[str]) -> None:
    """Raise ``InvalidInputError`` for an unknown or computed column; suggests the nearest name."""
    names = [field.name for field in table.schema.fields]
    for column in columns:
        first = column.split(".", maxsplit=1)[0]
        if column in names or first in names:
            continue
        if first in computed_columns(table.schema.options):
            message = (
                f"table {table.name}: column {first!r} is computed; take it away by RESET "
                f"('column.{first}.expression'), or change it by SET ('column.{first}.expression' = '...')"
            )
            raise InvalidInputError(message)
        message = f"table {table.name} has no column {column!r}{did_you_mean(column, names)}"
        raise InvalidInputError(message)


def _layout_in(table: DynamicTable, options: Mapping[str, str | None]) -> bool:
    """Return whether options change the layout, which rewrites all rows; refuse a mixture with other options."""
    changed = {canonical_key(key) for key, value in options.items()}
    layout = changed & set(LAYOUT_OPTIONS)
    others = changed - layout
    if layout and others:
        message = (
            f"table {table.name}: option {min(layout)} rewrites the whole table, option {min(others)} changes nothing "
            "that is there; set them by two statements"
        )
        raise InvalidInputError(message)
    return bool(layout)


def _rewritten(
    table: DynamicTable, *, primary_key: Sequence[str] = (), options: Mapping[str, str | None] | None = None
) -> Result:
    altered = table.rewrite(primary_key=primary_key, options=options)
    if altered.schema.id == table.schema.id:
        return Result(message=f"table {altered.name} is unchanged: it already has these properties")
    return Result(message=f"table {altered.name} rewritten")


def _added(table: DynamicTable, column: ColumnDefinition) -> AddColumn:
    if column.is_key:
        message = f"table {table.name}: column {column.name!r} can't become the primary key of an existing table"
        raise InvalidInputError(message)
    type_ = column.type if column.nullable else f"{column.type} NOT NULL"
    return AddColumn(column.name, type_, comment=column.comment, after=column.after, first=column.first)


def _metadata_set(column: ColumnDefinition) -> list[SchemaChange]:
    return [] if column.metadata is None else [SetOption(metadata_key(column.name), column.metadata)]


def _modified(table: DynamicTable, column: ColumnDefinition) -> list[SchemaChange]:
    field = next((each for each in table.schema.fields if each.name == column.name), None)
    has_type = field is not None and type_of(column.type).with_nullable(nullable=field.type.nullable) == field.type
    changes: list[SchemaChange] = [] if has_type else [AlterType(column.name, column.type)]
    if field is not None and field.type.nullable is not column.nullable:
        is_key = column.name in table.schema.primary_keys
        changes += [] if is_key else [SetNullable(column.name, nullable=column.nullable)]
    if column.comment is not None:
        changes.append(SetComment(column.comment, column.name))
    changes += _metadata_set(column)
    if column.first or column.after is not None:
        changes.append(MoveColumn(column.name, after=column.after, first=column.first))
    return changes


def _altered(change: AlterOneColumn) -> list[SchemaChange]:
    if change.type is not None:
        return [AlterType(change.column, change.type)]
    if change.comment is not None:
        return [SetComment(change.comment, change.column)]
    if change.nullable is not None:
        return [SetNullable(change.column, nullable=change.nullable)]
    return [MoveColumn(change.column, after=change.after, first=change.first)]


def _drop_partitions(table: DynamicTable, change: DropPartitions) -> Result:
    specs = [static_values(table, each) for each in change.partitions]
    try:
        return written(table, table.maintenance.drop_partitions(specs))
    except NotFoundError:
        if not change.if_exists:
            raise
        return Result(message=f"{table.name}: the partition does not exist")


def _rename(state: SessionState, statement: AlterTable, table: DynamicTable) -> Result:
    if not isinstance(statement.change, RenameTable):
        message = "no new name is given"
        raise InvalidInputError(message)
    parts = statement.change.new_name.parts
    database = table.name.partition(".")[0]
    new_name = f"{database}.{parts[0]}" if len(parts) == 1 else state.full_name(parts)
    renamed = state.catalog.rename_table(table.name, new_name)
    return Result(message=f"table {table.name} renamed to {renamed.name}")
