"""What statements are made of: names, partitions, and pieces of text that are Spark's to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from storage_lib.sql.text.query_tables import Query

Literal: TypeAlias = str | int | float | bool | None
"""A constant as written; a DATE or TIMESTAMP is its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """A table as a statement names it: one to three parts, the last with what follows a ``$``.

    ``start`` is its place in the statement's text.
    """

    parts: tuple[str, ...]
    start: int = 0

    def __str__(self) -> str:
        """As written, without quotes."""
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """A condition or a value, word for word; ``start`` is its place in the statement's text."""

    text: str
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionClause:
    """``PARTITION (a = 1, b)``: values of the static columns; None in ``dynamic`` order for those without a value."""

    values: Mapping[str, Literal] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The table that a statement writes, with its hint and the name by which its expressions call it."""

    table: NamedTable
    hint: Mapping[str, str] = field(default_factory=dict)
    alias: str | None = None


__all__ = ["Expression", "Literal", "NamedTable", "PartitionClause", "Query", "Target"]
