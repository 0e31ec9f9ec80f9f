"""Schemas and changes of schemas as Paimon's REST catalog spells them, read into those of this library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
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
)
from storage_lib.schema.table_schema import APPEND_ONLY, WRITE_MODE_OPTION, TableSchema
from storage_lib.schema.types.data_types import DataType
from storage_lib.schema.types.type_spelling import type_from_json
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.paimon_catalog.served_options import require_served_option
from storage_lib.serve.requests.json_body import text, text_list, texts


def identifier(value: object) -> TableName:
    """Return the name in ``{"database", "object"}``. Raises ``RefusedRequestError`` for anything else."""
    found = _object(value, "an identifier")
    try:
        return TableName.parse_plain(f"{text(found, 'database')}.{text(found, 'object')}")
    except InvalidInputError as error:
        raise _bad(str(error)) from error


def descriptor(value: object) -> TableDescriptor:
    """Return the declaration of a new table. Raises ``RefusedRequestError`` for one that can't be read."""
    schema = _object(value, "schema")
    columns, comments = [], {}
    for each in _list(schema, "fields"):
        field = _object(each, "a field")
        name = text(field, "name")
        if field.get("defaultValue") is not None:
            raise _not_implemented("default values of columns")
        columns.append((name, _type(field.get("type"))))
        if field.get("description") is not None:
            comments[name] = text(field, "description")
    options, primary_key = texts(schema, "options"), text_list(schema, "primaryKeys")
    for key in options:
        require_served_option(key)
    if not primary_key:
        # Paimon's tables without a key are append tables; those of this library that count equal rows are not its.
        options = {WRITE_MODE_OPTION: APPEND_ONLY, **options}
    return TableDescriptor(
        schema=tuple(columns),
        primary_key=primary_key,
        partition_by=text_list(schema, "partitionKeys"),
        options=options,
        comment=text(schema, "comment") if schema.get("comment") is not None else None,
        column_comments=comments,
    )


def changes_of(body: Mapping[str, Any], schema: TableSchema) -> list[SchemaChange]:
    """Return the changes of a request; ``schema`` is the table's, for positions and types.

    Raises ``RefusedRequestError`` for a change that can't be read or is not supported.
    """
    found = [change for each in _list(body, "changes") for change in _changes(_object(each, "a change"), schema)]
    if not found:
        raise _bad("changes has to be a list with at least one change")
    return found


def _changes(change: Mapping[str, Any], schema: TableSchema) -> Iterator[SchemaChange]:
    action = text(change, "action")
    read = _ACTIONS.get(action)
    if read is None:
        raise _not_implemented(f"the change {action!r}")
    yield from read(change, schema)


def _set_option(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    key = text(change, "key")
    require_served_option(key)
    yield SetOption(key, text(change, "value"))


def _remove_option(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    key = text(change, "key")
    require_served_option(key)
    yield RemoveOption(key)


def _update_comment(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    yield SetComment(None if change.get("comment") is None else text(change, "comment"))


def _add_column(change: Mapping[str, Any], schema: TableSchema) -> Iterator[SchemaChange]:
    comment = None if change.get("comment") is None else text(change, "comment")
    name = _path(change)
    after, first = _place(change.get("move"), schema, default=(None, False))
    yield AddColumn(name, _type(change.get("dataType")), comment=comment, after=after, first=first)


def _rename_column(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    yield RenameColumn(_path(change), text(change, "newName"))


def _drop_column(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    yield DropColumn(_path(change))


def _update_type(change: Mapping[str, Any], schema: TableSchema) -> Iterator[SchemaChange]:
    name, wanted = _path(change), _type(change.get("newDataType"))
    yield AlterType(name, wanted)
    columns = {each.name: each.type for each in schema.fields}
    keeps = change.get("keepNullability") is True or name in schema.primary_keys
    if not keeps and name in columns and columns[name].nullable is not wanted.nullable:
        yield SetNullable(name, nullable=wanted.nullable)


def _update_nullability(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    wanted = change.get("newNullability")
    if not isinstance(wanted, bool):
        raise _bad("newNullability has to be true or false")
    yield SetNullable(_path(change), nullable=wanted)


def _update_column_comment(change: Mapping[str, Any], _: TableSchema) -> Iterator[SchemaChange]:
    yield SetComment(None if change.get("newComment") is None else text(change, "newComment"), _path(change))


def _update_position(change: Mapping[str, Any], schema: TableSchema) -> Iterator[SchemaChange]:
    move = _object(change.get("move"), "move")
    after, first = _place(move, schema, default=None)
    yield MoveColumn(text(move, "fieldName"), after=after, first=first)


_ACTIONS: Mapping[str, Callable[[Mapping[str, Any], TableSchema], Iterator[SchemaChange]]] = {
    "setOption": _set_option,
    "removeOption": _remove_option,
    "updateComment": _update_comment,
    "addColumn": _add_column,
    "renameColumn": _rename_column,
    "dropColumn": _drop_column,
    "updateColumnType": _update_type,
    "updateColumnNullability": _update_nullability,
    "updateColumnComment": _update_column_comment,
    "updateColumnPosition": _update_position,
}


def _place(move: object, schema: TableSchema, *, default: tuple[str | None, bool] | None) -> tuple[str | None, bool]:
    """Return after which column one moves, or that it becomes the first; ``default`` without a move."""
    if move is None and default is not None:
        return default
    found = _object(move, "move")
    names = [each.name for each in schema.fields if each.name != found.get("fieldName")]
    match found.get("type"):
        case "FIRST":
            return None, True
        case "LAST":
            return names[-1], False
        case "AFTER":
            return text(found, "referenceFieldName"), False
        case "BEFORE":
            reference = text(found, "referenceFieldName")
            if reference not in names:
                raise RefusedRequestError(Refusal.NO_COLUMN, "the column does not exist", resource=reference)
            place = names.index(reference)
            return (None, True) if place == 0 else (names[place - 1], False)
        case _:
            raise _bad("the type of a move has to be FIRST, LAST, AFTER or BEFORE")


def _path(change: Mapping[str, Any]) -> str:
    names = text_list(change, "fieldNames")
    if not names:
        raise _bad("fieldNames has to name a column")
    return ".".join(names)


def _type(value: object) -> DataType:
    try:
        return type_from_json(value)
    except InvalidInputError as error:
        raise _bad(str(error)) from error
    except (LookupError, TypeError, ValueError, RecursionError, AttributeError) as error:
        raise _bad("a type can't be read") from error


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _bad(f"{what} has to be a JSON object")
    return value


def _list(value: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = value.get(key)
    if not isinstance(found, list):
        raise _bad(f"{key} has to be a list")
    return found


def _bad(message: str) -> RefusedRequestError:
    return RefusedRequestError(Refusal.BAD_REQUEST, message)


def _not_implemented(what: str) -> RefusedRequestError:
    return RefusedRequestError(Refusal.NOT_IMPLEMENTED, f"the server does not support {what}; use SQL or Python")
