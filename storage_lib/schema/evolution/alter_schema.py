"""Apply changes to a schema in order; column ids are kept, and changes that would break older files are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

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
    type_of,
)
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.options.default_values import with_declared_defaults
from storage_lib.schema.options.metadata_options import column_of_key
from storage_lib.schema.options.option_changes import changed_options, options_naming, options_with_renamed
from storage_lib.schema.table_schema import TableSchema, check_schema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import (
    ArrayType,
    MapType,
    MultisetType,
    RowType,
    children_of,
    is_nested,
    with_new_ids,
)

Fields: TypeAlias = tuple[DataField, ...]
Edit: TypeAlias = Callable[[Fields, str], Fields]
"""Function that changes the field of a given name among the fields of one level."""


def alter_schema(schema: TableSchema, changes: Sequence[SchemaChange], *, time_millis: int) -> TableSchema:
    """Return version ``schema.id + 1``, or ``schema`` itself if nothing changes.

    Raises ``InvalidInputError`` for the first invalid change, naming the column or option and the remedy.
    """
    altered = schema
    for change in changes:
        altered = _changed(altered, change)
    if altered == schema:
        return schema
    altered = replace(altered, id=schema.id + 1, time_millis=max(time_millis, schema.time_millis))
    check_schema(altered)
    return altered


def _changed(schema: TableSchema, change: SchemaChange) -> TableSchema:  # noqa: PLR0911  one line per change
    match change:
        case AddColumn():
            return _with_added(schema, change)
        case DropColumn(name=name):
            _refuse_key(schema, name, "dropped", schema.primary_keys)
            _refuse_in_options(schema, name)
            kept = {key: value for key, value in schema.options.items() if column_of_key(key) != name}
            return _with_edited(replace(schema, options=kept), name, _dropped)
        case RenameColumn(name=name, new_name=new_name):
            return _with_renamed(schema, name, new_name)
        case MoveColumn():
            return _with_edited(
                schema, change.name, lambda fields, name: _moved(fields, name, change.after, first=change.first)
            )
        case AlterType(name=name, type=like):
            _refuse_key(schema, name, "given another type", schema.primary_keys)
            wanted = type_of(like)
            return _with_edited(
                schema, name, lambda fields, last: _each(fields, last, lambda each: _widened(each, wanted))
            )
        case SetNullable(name=name, nullable=nullable):
            _refuse_key(schema, name, "made nullable", schema.primary_keys)
            return _with_edited(
                schema, name, lambda fields, last: _each(fields, last, lambda each: _with_nullable(each, nullable))
            )
        case SetComment(comment=comment, name=name):
            return _with_comment(schema, comment, name)
        case SetOption(key=key, value=value):
            return _with_option(schema, key, value)
        case RemoveOption(key=key):
            return _with_option(schema, key, None)


def _with_option(schema: TableSchema, key: str, value: str | None) -> TableSchema:
    changed = replace(schema, options=changed_options(schema.options, key, value))
    return with_declared_defaults(changed, schema.options)


def _with_comment(schema: TableSchema, comment: str | None, name: str | None) -> TableSchema:
    if name is None:
        return replace(schema, comment=comment)
    return _with_edited(
        schema, name, lambda fields, last: _each(fields, last, lambda each: replace(each, description=comment))
    )


_NO_COLUMN = DataField(id=-1, name="", type=DataType(TypeRoot.INTEGER))


def _with_added(schema: TableSchema, change: AddColumn) -> TableSchema:
    path = _path_to_new(schema, change.name)
    wanted = type_of(change.type)
    if not wanted.nullable:
        message = f"new column {change.name!r} is {wanted}, but existing rows have no value for it; make it nullable"
        raise InvalidInputError(message)
    ids = _Ids(schema.highest_field_id)
    own_id = ids.next()
    added = DataField(id=own_id, name=path[-1], type=with_new_ids(wanted, ids.next), description=change.comment)

    def add(fields: Fields, name: str) -> Fields:
        if any(each.name == name for each in fields):
            message = f"column {change.name!r} is there already; choose another name"
            raise InvalidInputError(message)
        if change.after is None and not change.first:
            return (*fields, added)
        return _moved((*fields, added), name, change.after, first=change.first)

    fields = _edited(schema.fields, path, add, change.name)
    return replace(schema, fields=fields, highest_field_id=ids.highest)


def _with_renamed(schema: TableSchema, name: str, new_name: str) -> TableSchema:
    _refuse_key(schema, name, "renamed", schema.partition_keys)

    def rename(fields: Fields, last: str) -> Fields:
        if new_name != last and any(each.name == new_name for each in fields):
            message = f"column {name!r} can't be renamed: {new_name!r} is there already; choose another name"
            raise InvalidInputError(message)
        return _each(fields, last, lambda each: replace(each, name=new_name))

    renamed = _with_edited(schema, name, rename)
    if len(_path_of(schema, name)) > 1:
        return renamed
    return replace(
        renamed,
        primary_keys=tuple(new_name if key == name else key for key in schema.primary_keys),
        options=options_with_renamed(schema.options, name, new_name),
    )


def _with_edited(schema: TableSchema, name: str, edit: Edit) -> TableSchema:
    return replace(schema, fields=_edited(schema.fields, _path_of(schema, name), edit, name))


def _edited(fields: Fields, path: Sequence[str], edit: Edit, name: str) -> Fields:
    if len(path) == 1:
        return edit(fields, path[0])
    return _each(fields, path[0], lambda each: replace(each, type=_edited_type(each.type, path[1:], edit, name)))


def _edited_type(of: DataType, path: Sequence[str], edit: Edit, name: str) -> DataType:
    if isinstance(of, RowType):
        return replace(of, fields=_edited(of.fields, path, edit, name))
    parts = dict(children_of(of))
    if path[0] not in parts or not isinstance(of, ArrayType | MapType | MultisetType):
        message = f"there is no column {name!r}: {of} has {' and '.join(parts) or 'no parts'}, not {path[0]!r}"
        raise InvalidInputError(message)
    # An element, key or value is not a column: its type can be changed, but it can't be dropped, renamed or moved.
    part = DataField(id=-1, name=path[0], type=parts[path[0]])
    edited = _edited((part, _NO_COLUMN), path, edit, name)
    if [each.name for each in edited] != [path[0], _NO_COLUMN.name]:
        message = f"{name!r} is a part of {of}, which can't be added, dropped or renamed; change the whole column"
        raise InvalidInputError(message)
    of_part = edited[0].type
    if isinstance(of, MapType):
        return replace(of, key=of_part) if path[0] == "key" else replace(of, value=of_part)
    return replace(of, element=of_part)


def _each(fields: Fields, name: str, change: Callable[[DataField], DataField]) -> Fields:
    if all(each.name != name for each in fields):
        message = f"there is no column {name!r}; there are {', '.join(each.name for each in fields)}"
        raise InvalidInputError(message)
    return tuple(change(each) if each.name == name else each for each in fields)


def _dropped(fields: Fields, name: str) -> Fields:
    _each(fields, name, lambda each: each)
    if len(fields) == 1:
        message = f"column {name!r} is the last one; drop the table, or the whole column it is a part of"
        raise InvalidInputError(message)
    return tuple(each for each in fields if each.name != name)


def _moved(fields: Fields, name: str, after: str | None, *, first: bool) -> Fields:
    _each(fields, name, lambda each: each)
    if (after is None) is not first or after == name:
        message = f"column {name!r} can be moved first=True, or after=<another column>; give one of the two"
        raise InvalidInputError(message)
    (moved,) = (each for each in fields if each.name == name)
    others = [each for each in fields if each.name != name]
    if first:
        return (moved, *others)
    names = [each.name for each in others]
    if after not in names:
        message = f"there is no column {after!r} to put {name!r} behind; there are {', '.join(names)}"
        raise InvalidInputError(message)
    place = names.index(after) + 1
    return (*others[:place], moved, *others[place:])


def _widened(each: DataField, wanted: DataType) -> DataField:
    if is_nested(each.type) or is_nested(wanted) or not holds_every_value(wanted, each.type):
        message = (
            f"column {each.name!r} is {each.type}, of which {wanted} does not hold every value; only a wider type of "
            "the same kind will do. Add a column of the new type, and fill it"
        )
        raise InvalidInputError(message)
    return replace(each, type=wanted.with_nullable(each.type.nullable))


def _with_nullable(each: DataField, nullable: bool) -> DataField:  # noqa: FBT001  private
    if each.type.nullable and not nullable:
        message = (
            f"column {each.name!r} may hold nulls already, so it can't be made NOT NULL; add a column, fill it, and "
            "drop this one"
        )
        raise InvalidInputError(message)
    return replace(each, type=each.type.with_nullable(nullable))


def _path_of(schema: TableSchema, name: str) -> Sequence[str]:
    return [name] if any(each.name == name for each in schema.fields) else name.split(".")


def _path_to_new(schema: TableSchema, name: str) -> Sequence[str]:
    """Split the name as a path only if it begins with a nested column: names may contain dots."""
    first = name.split(".", maxsplit=1)[0]
    is_path = any(each.name == first and is_nested(each.type) for each in schema.fields)
    return name.split(".") if is_path and "." in name else [name]


def _refuse_key(schema: TableSchema, name: str, verb: str, keys: Sequence[str]) -> None:
    if name in keys or name in schema.partition_keys:
        role = "a partition column" if name in schema.partition_keys else "part of the primary key"
        message = (
            f"column {name!r} is {role}, so it can't be {verb}: every row's place depends on it; create a new table"
        )
        raise InvalidInputError(message)


def _refuse_in_options(schema: TableSchema, name: str) -> None:
    naming = options_naming(schema.options, name)
    if naming:
        message = f"column {name!r} can't be dropped: option {naming[0]} speaks of it; create a new table"
        raise InvalidInputError(message)


@dataclass
class _Ids:
    highest: int

    def next(self) -> int:
        self.highest += 1
        return self.highest
