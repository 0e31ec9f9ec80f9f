"""Schema changes that a log allows, given that old records are immutable and have column names, not ids.

A column missing in a record reads as null; a column missing in the table is ignored. So columns may be added and
dropped, but a name must always denote the same column, with the same encoding of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_field import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import RowType, children_of

_SPELLED_ALIKE = (
    frozenset({TypeRoot.TINYINT, TypeRoot.SMALLINT, TypeRoot.INTEGER, TypeRoot.BIGINT}),
    frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR}),
    frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY}),
)


def refuse_for_log(altered: TableSchema, earlier: Iterable[TableSchema]) -> None:
    """Refuse a schema under which records of ``earlier`` schemas would be misread.

    Raises ``InvalidInputError`` naming the column and the remedy.
    """
    now = dict(_columns(altered.fields))
    names_by_id = {each.id: name for name, each in now.items()}
    for schema in earlier:
        for name, was in _columns(schema.fields):
            new_name = names_by_id.get(was.id, name)
            if new_name != name:
                message = (
                    f"column {name!r} can't be renamed to {new_name!r}: the records in the log have it under its old "
                    "name. Add a column, or create a new table"
                )
                raise InvalidInputError(message)
            column = now.get(name)
            if column is not None and column.id != was.id:
                message = (
                    f"column {name!r} can't be added: the records in the log still have an earlier column of that "
                    "name. Choose another name"
                )
                raise InvalidInputError(message)
            if column is not None and not _is_spelled_alike(was.type, column.type):
                message = (
                    f"column {name!r} can't become {column.type}: the records in the log have it as {was.type}, which "
                    "has another encoding. Add a column of the new type"
                )
                raise InvalidInputError(message)


def _columns(fields: Iterable[DataField], path: str = "") -> Iterator[tuple[str, DataField]]:
    """Yield columns and the fields of ROWs in them, each with its path."""
    for each in fields:
        name = f"{path}{each.name}"
        yield name, each
        yield from _inside(each.type, f"{name}.")


def _inside(of: DataType, path: str) -> Iterator[tuple[str, DataField]]:
    if isinstance(of, RowType):
        yield from _columns(of.fields, path)
        return
    for name, child in children_of(of):
        yield from _inside(child, f"{path}{name}.")


def _is_spelled_alike(was: DataType, now: DataType) -> bool:
    if was.root is not now.root:
        return any(was.root in family and now.root in family for family in _SPELLED_ALIKE)
    if was.root is TypeRoot.DECIMAL:
        return was.scale == now.scale
    inside = list(zip(children_of(was), children_of(now), strict=False))
    if inside and not isinstance(was, RowType):
        return all(_is_spelled_alike(old, new) for (_, old), (_, new) in inside)
    # Times and timestamps are encoded as numbers whose unit depends on the precision.
    return was.root not in _OF_PRECISION or was.precision == now.precision


_OF_PRECISION = (TypeRoot.TIME, TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)
