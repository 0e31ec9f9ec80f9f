"""Changes of a table's columns that follow those of its source, as the schemas of records tell them.

A column that the table lacks is added; a number or timestamp becomes wider where the records write wider ones. A column
that the records no longer have keeps its stored values. Lengths of texts and bytes are no part of records' schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from storage_lib.log_store.conversion.new_column_type import table_type
from storage_lib.schema.evolution.schema_changes import AddColumn, AlterType, type_of
from storage_lib.schema.evolution.type_widening import holds_every_value
from storage_lib.schema.types.data_types import DataType, TypeRoot
from storage_lib.schema.types.nested_types import is_nested

if TYPE_CHECKING:
    from storage_lib.log_store.conversion.captured_value_type import ValueType
    from storage_lib.schema.table_schema import TableSchema

_NUMBERS = (
    TypeRoot.TINYINT,
    TypeRoot.SMALLINT,
    TypeRoot.INTEGER,
    TypeRoot.BIGINT,
    TypeRoot.DECIMAL,
    TypeRoot.FLOAT,
    TypeRoot.DOUBLE,
)
_MOMENTS = (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ)


def changes_for(schema: TableSchema, columns: Mapping[str, ValueType]) -> tuple[AddColumn | AlterType, ...]:
    """Return the changes that make a table hold the ``columns`` of a source, in their order."""
    known = {field.name: field.type for field in schema.fields}
    # Types of these can't change; values that do not fit are refused.
    fixed = {*schema.primary_keys, *schema.partition_keys}
    changes: list[AddColumn | AlterType] = []
    for name, written in columns.items():
        needed = table_type(written)
        if name not in known:
            changes.append(AddColumn(name, needed, comment=written.comment))
        elif name not in fixed and _is_narrower(known[name], needed):
            changes.append(AlterType(name, needed))
    return tuple(changes)


def is_made(schema: TableSchema, change: AddColumn | AlterType) -> bool:
    """Whether the table has the column of a change already, at least as wide."""
    known = {field.name: field.type for field in schema.fields}
    if change.name not in known:
        return False
    return isinstance(change, AddColumn) or holds_every_value(known[change.name], type_of(change.type))


def described(change: AddColumn | AlterType) -> str:
    """Describe a change for messages."""
    if isinstance(change, AddColumn):
        return f"has a new column {change.name!r} ({change.type})"
    return f"writes column {change.name!r} as {change.type} now"


def _is_narrower(held: DataType, needed: DataType) -> bool:
    if is_nested(held) or is_nested(needed):
        return False
    of_one_kind = (held.root in _NUMBERS and needed.root in _NUMBERS) or (
        held.root in _MOMENTS and held.root is needed.root
    )
    return of_one_kind and not holds_every_value(held, needed) and holds_every_value(needed, held)
