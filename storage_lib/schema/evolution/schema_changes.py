"""Changes of ALTER TABLE, one value each; ``alter_schema`` applies them.

Nested columns are named by their path: ``address.zip``, ``tags.element.name``, ``prices.value``. A column whose own
name contains dots takes precedence over an equal path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType
from storage_lib.schema.types.nested_types import column_type_of_arrow
from storage_lib.schema.types.type_spelling import parse_type

TypeLike: TypeAlias = DataType | pa.DataType | str
"""A type of this library, of Arrow (``pa.int64()``) or of SQL (``"BIGINT"``, ``"ARRAY<INT>"``)."""


def type_of(like: TypeLike) -> DataType:
    """Convert to a type of this library. Raises ``InvalidInputError`` for an unknown type."""
    if isinstance(like, DataType):
        return like
    return column_type_of_arrow(like) if isinstance(like, pa.DataType) else parse_type(like)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a nullable column, null in existing rows: as the last column, the ``first``, or right ``after`` another."""

    name: str
    type: TypeLike
    comment: str | None = None
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column; a later column of the same name is another column."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column: ``new_name`` replaces the last part of the path ``name``."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """Move a column to the ``first`` position, or right ``after`` another."""

    name: str
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class AlterType:
    """Change a column's type to a wider one, which holds every value of the old type; NOT NULL is unchanged."""

    name: str
    type: TypeLike


@dataclass(frozen=True, slots=True)
class SetNullable:
    """Allow nulls in a column. The reverse is refused, because existing rows may contain nulls."""

    name: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SetComment:
    """Set the comment of a column, or of the table if ``name`` is None; None removes it."""

    comment: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set an option of the table."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Reset an option to its default."""

    key: str


SchemaChange: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | MoveColumn | AlterType | SetNullable | SetComment | SetOption | RemoveOption
)
