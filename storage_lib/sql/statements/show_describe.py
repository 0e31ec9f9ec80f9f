"""Statements that show the catalog's contents, and those that change only the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from storage_lib.sql.statements.parts import NamedTable, PartitionClause


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """DESCRIBE [EXTENDED] a table [PARTITION]."""

    table: NamedTable
    extended: bool = False
    partition: PartitionClause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeDatabase:
    """DESCRIBE DATABASE."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCatalogs:
    """SHOW CATALOGS [LIKE pattern]."""

    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowDatabases:
    """SHOW DATABASES [IN catalog]; ``pattern`` with ``*`` and ``|`` as in Spark, or ``%`` and ``_``."""

    catalog: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowTables:
    """SHOW TABLES [IN [catalog.]database] [LIKE pattern]."""

    catalog: str | None = None
    database: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowViews:
    """SHOW VIEWS [IN database] [LIKE pattern]: also the session's temporary views."""

    database: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateTable:
    """SHOW CREATE TABLE, or VIEW."""

    table: NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowPartitions:
    """SHOW PARTITIONS: all partitions, or those with the given values."""

    table: NamedTable
    partition: PartitionClause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowColumns:
    """SHOW COLUMNS."""

    table: NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """SHOW OPTIONS: all table options, or those of one table."""

    table: NamedTable | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """USE a database."""

    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOption:
    """SET key = value; without a value it shows one setting, without a key all of them."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOption:
    """RESET one setting, or all."""

    key: str | None = None


LookStatement: TypeAlias = (
    Describe
    | DescribeDatabase
    | ShowCatalogs
    | ShowDatabases
    | ShowTables
    | ShowViews
    | ShowCreateTable
    | ShowPartitions
    | ShowColumns
    | ShowOptions
    | Use
    | SetOption
    | ResetOption
)
