"""Statements that create and drop tables, views and databases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.sql.statements.parts import Expression, NamedTable, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDefinition:
    """A stored column; ``type`` as written. ``first`` and ``after`` are its position in ALTER TABLE.

    ``metadata``: readers of external topics fill it from that metadata of records.
    """

    name: str
    type: str
    nullable: bool = True
    is_key: bool = False
    comment: str | None = None
    metadata: str | None = None
    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedColumn:
    """``name AS (expression)``: not stored, evaluated at each read."""

    name: str
    expression: Expression
    comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """``WATERMARK FOR column AS strategy``."""

    column: str
    strategy: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeClause:
    """``LIKE source (EXCLUDING OPTIONS ...)``; ``features`` are pairs (action, feature) in upper case."""

    source: NamedTable
    features: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE in all its forms; ``primary_key`` () if none is declared, ``using`` the format of a Spark table."""

    table: NamedTable
    columns: tuple[ColumnDefinition, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    using: str | None = None
    like: LikeClause | None = None
    query: Query | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateView:
    """CREATE [TEMPORARY] VIEW; ``columns`` are new names for the query's columns, () keeps them."""

    view: NamedTable
    query: Query
    columns: tuple[str, ...] = ()
    column_comments: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """CREATE DATABASE."""

    database: str
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """DROP TABLE."""

    table: NamedTable
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropView:
    """DROP [TEMPORARY] VIEW."""

    view: NamedTable
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterView:
    """ALTER VIEW ... RENAME TO."""

    view: NamedTable
    new_name: NamedTable
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """DROP DATABASE; with ``cascade`` including its tables."""

    database: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateCatalog:
    """CREATE CATALOG ... WITH: tables of another warehouse or format, which the session reads."""

    catalog: str
    options: Mapping[str, str]
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropCatalog:
    """DROP CATALOG."""

    catalog: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentOnTable:
    """COMMENT ON TABLE ... IS."""

    table: NamedTable
    comment: str | None


TableStatement: TypeAlias = (
    CreateTable
    | CreateView
    | CreateDatabase
    | CreateCatalog
    | DropTable
    | DropView
    | AlterView
    | DropDatabase
    | DropCatalog
    | CommentOnTable
)
