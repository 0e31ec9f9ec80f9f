"""Parts of statements: names, partitions, and expressions that Spark evaluates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.sql.text.query_tables import Query

Literal: TypeAlias = str | int | float | bool | None
"""Value of a constant; a DATE or TIMESTAMP is its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table's name in a statement: one to three parts; the last one includes a ``$`` suffix.

    ``start`` is its offset in the statement's text.
    """

    parts: tuple[str, ...]
    start: int = 0

    def __str__(self) -> str:
        """Return the name with dots, without quotes."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Text of a condition or a value as written; ``start`` is its offset in the statement's text."""

    text: str
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClause:
    """``PARTITION (a = 1, b)``: ``values`` of the static columns, and the names of ``dynamic`` ones without a value."""

    values: Mapping[str, Literal] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Target table of a statement, with its hint and its alias in the statement's expressions."""

    table: NamedTable
    hint: Mapping[str, str] = field(default_factory=dict)
    alias: str | None = None


__all__ = ["Expression", "Literal", "NamedTable", "PartitionClause", "Query", "Target"]
