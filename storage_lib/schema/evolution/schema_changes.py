"""Changes of ALTER TABLE, one value each; ``alter_schema`` applies them.

A column inside a nested one is named by its path: ``address.zip``, ``tags.element.name``, ``prices.value``. A column
whose own name has a dot in it goes before a path that reads alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from storage_lib.schema.types.data_types import DataType
from storage_lib.schema.types.nested_types import column_type_of_arrow
from storage_lib.schema.types.type_spelling import parse_type

TypeLike: TypeAlias = DataType | pa.DataType | str
"""A type as this library, Arrow (``pa.int64()``) or SQL (``"BIGINT"``, ``"ARRAY<INT>"``) writes it."""


def type_of(like: TypeLike) -> DataType:
    """The type that is meant; ``InvalidInputError`` if there is none such."""
    if isinstance(like, DataType):
        return like
    return column_type_of_arrow(like) if isinstance(like, pa.DataType) else parse_type(like)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new nullable column, null in every row that is there: the last one, the ``first``, or right ``after`` one."""

    name: str
    type: TypeLike
    comment: str | None = None
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Without this column; a later one of the same name is another column."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """``new_name`` for the last part of the path ``name``."""

    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """``first``, or right ``after`` another."""

    name: str
    after: str | None = None
    first: bool = False


@dataclass(frozen=True, slots=True)
class AlterType:
    """A wider type, which holds every value of the present one; whether nulls are allowed stays as it is."""

    name: str
    type: TypeLike


@dataclass(frozen=True, slots=True)
class SetNullable:
    """Allow nulls in a column. The other way round is refused: rows that are there may have some."""

    name: str
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SetComment:
    """The comment of a column, or of the table where ``name`` is None; None takes it away."""

    comment: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SetOption:
    """An option of the table."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class RemoveOption:
    """Back to an option's default."""

    key: str


SchemaChange: TypeAlias = (
    AddColumn | DropColumn | RenameColumn | MoveColumn | AlterType | SetNullable | SetComment | SetOption | RemoveOption
)
