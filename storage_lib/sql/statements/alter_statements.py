"""ALTER TABLE and its changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from storage_lib.sql.statements.parts import NamedTable, PartitionClause
from storage_lib.sql.statements.table_statements import ColumnDefinition


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumns:
    """ADD COLUMN."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPrimaryKey:
    """ADD PRIMARY KEY ... NOT ENFORCED."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumns:
    """DROP COLUMN; nested columns as paths."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropPartitions:
    """DROP PARTITION."""

    partitions: tuple[PartitionClause, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameOneColumn:
    """RENAME COLUMN a TO b."""

    column: str
    new_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    """RENAME TO."""

    new_name: NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyColumns:
    """MODIFY: new types, positions and comments of columns."""

    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterOneColumn:
    """ALTER COLUMN: exactly one of the optional fields is set."""

    column: str
    type: str | None = None
    comment: str | None = None
    nullable: bool | None = None
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOptions:
    """SET (key = value, ...)."""

    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOptions:
    """RESET (key, ...)."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """[PARTITION (...)] COMPACT."""

    partition: PartitionClause | None = None


TableChange: TypeAlias = (
    AddColumns
    | AddPrimaryKey
    | DropColumns
    | DropPartitions
    | RenameOneColumn
    | RenameTable
    | ModifyColumns
    | AlterOneColumn
    | SetOptions
    | ResetOptions
    | Compact
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """ALTER TABLE with one change."""

    table: NamedTable
    change: TableChange
    if_exists: bool = False
