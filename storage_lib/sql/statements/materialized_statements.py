"""Statements about materialized tables: tables whose rows are the answer of a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.schema.options.materialized_table import Freshness
from storage_lib.sql.statements.parts import NamedTable, PartitionClause, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateMaterializedTable:
    """CREATE MATERIALIZED TABLE ... AS; ``primary_key`` () lets the query decide.

    ``freshness`` None: refreshed only on request. ``refresh_mode`` is auto, incremental or full.
    """

    table: NamedTable
    query: Query
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    freshness: Freshness | None = None
    refresh_mode: str = "auto"
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """REFRESH [PARTITION]."""

    partition: PartitionClause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspend:
    """SUSPEND: no refresh until RESUME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """RESUME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFreshness:
    """SET FRESHNESS, or SET TARGET_LAG = DOWNSTREAM."""

    freshness: Freshness


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRefreshMode:
    """SET REFRESH_MODE: auto, incremental or full."""

    refresh_mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQuery:
    """AS: a new query."""

    query: Query


MaterializedChange: TypeAlias = Refresh | Suspend | Resume | SetFreshness | SetRefreshMode | SetQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterMaterializedTable:
    """ALTER MATERIALIZED TABLE with one change."""

    table: NamedTable
    change: MaterializedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class DropMaterializedTable:
    """DROP MATERIALIZED TABLE."""

    table: NamedTable
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowMaterializedTables:
    """SHOW MATERIALIZED TABLES [IN database] [LIKE pattern]."""

    database: str | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowCreateMaterializedTable:
    """SHOW CREATE MATERIALIZED TABLE."""

    table: NamedTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainRefresh:
    """EXPLAIN REFRESH: how a materialized table is maintained."""

    table: NamedTable


MaterializedStatement: TypeAlias = (
    CreateMaterializedTable
    | AlterMaterializedTable
    | DropMaterializedTable
    | ShowMaterializedTables
    | ShowCreateMaterializedTable
    | ExplainRefresh
)
