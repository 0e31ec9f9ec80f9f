"""Statements that read and write rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.sql.statements.parts import Expression, Literal, NamedTable, PartitionClause, Query, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Select:
    """A query."""

    query: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """INSERT INTO or OVERWRITE; ``columns`` (): all columns in order, or ``by_name`` those that the query names."""

    target: Target
    query: Query
    overwrite: bool = False
    partition: PartitionClause | None = None
    columns: tuple[str, ...] = ()
    by_name: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain:
    """EXPLAIN of a query, or of an INSERT and its query; ``mode`` is Spark's EXPLAIN mode, or empty."""

    query: Query
    mode: str = ""
    insert: Insert | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """DELETE FROM; ``condition`` None deletes every row."""

    target: Target
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """``column = value``."""

    column: str
    value: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """UPDATE ... SET."""

    target: Target
    assignments: tuple[Assignment, ...]
    condition: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeUpdate:
    """THEN UPDATE SET; ``assignments`` () is ``SET *``."""

    assignments: tuple[Assignment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeDelete:
    """THEN DELETE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInsert:
    """THEN INSERT; without columns it is ``INSERT *``."""

    columns: tuple[str, ...] = ()
    values: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeClause:
    """WHEN [NOT] MATCHED [BY SOURCE] [AND condition] THEN action."""

    matches_target: bool
    matches_source: bool
    condition: Expression | None
    action: MergeUpdate | MergeDelete | MergeInsert


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """MERGE INTO ... USING a table or a query."""

    target: Target
    source: Target | Query
    source_alias: str | None
    condition: Expression
    clauses: tuple[MergeClause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncate:
    """TRUNCATE TABLE."""

    table: NamedTable
    partition: PartitionClause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyze:
    """ANALYZE TABLE ... COMPUTE STATISTICS; ``columns`` None: all columns, (): none."""

    table: NamedTable
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """CALL procedure(arguments): positional ``arguments``, then ``named`` ones."""

    procedure: tuple[str, ...]
    arguments: tuple[Literal, ...] = ()
    named: Mapping[str, Literal] = field(default_factory=dict)


RowStatement: TypeAlias = Select | Insert | Explain | Delete | Update | Merge | Truncate | Analyze | Call
