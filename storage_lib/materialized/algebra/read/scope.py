"""Names that are in sight at a place of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

from sqlglot import exp

from storage_lib.errors import InvalidInputError

__all__ = ["Scope", "in_tree", "place_of", "translated", "type_of"]

_IN_TREE = "in_tree"
_KIND = "kind"


@dataclass(frozen=True, slots=True)
class Scope:
    """Tables of one FROM clause and, in ``outer``, those of the query around it. Names are compared without case."""

    outer: Self | None = None
    tables: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, alias: str, columns: dict[str, str]) -> None:
        """Add a table. Raises ``InvalidInputError`` if there is one of that alias."""
        if alias.lower() in self.tables:
            raise InvalidInputError(f"two tables in one FROM clause are called {alias}; give them different aliases")
        self.tables[alias.lower()] = {name.lower(): own for name, own in columns.items()}

    def find(self, table: str, name: str) -> str | None:
        """Return the tree's name of a column, of this scope or of one around it; None if there is none."""
        found = self.tables.get(table.lower())
        if found is not None:
            return found.get(name.lower())
        return None if self.outer is None else self.outer.find(table, name)


def in_tree(name: str, kind: exp.DataType | None = None) -> exp.Expr:
    """Return a reference to a column of the tree of a type, which ``translated`` leaves as it is."""
    reference = exp.column(name)
    reference.meta[_IN_TREE] = True
    reference.meta[_KIND] = kind
    return reference


def type_of(expression: exp.Expr) -> exp.DataType | None:
    """Return the type of an expression; None if it is unknown."""
    kind = expression.meta.get(_KIND) or expression.type
    return kind if isinstance(kind, exp.DataType) else None


def translated(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """Return an expression over the tree's columns. Raises ``InvalidInputError`` for a column that does not exist."""

    def translate(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.meta.get(_IN_TREE):
            return node
        found = scope.find(node.table, node.name)
        if found is None:
            raise InvalidInputError(f"{place_of(node)}there is no column {node.sql('spark')}")
        return in_tree(found, type_of(node))

    return expression.copy().transform(translate, copy=False)


def place_of(node: exp.Expr) -> str:
    """Return "line L, column C: " of a part of a query; an empty text if it is unknown."""
    for part in _parts(node):
        if "line" in part.meta and "col" in part.meta:
            start = int(part.meta["col"]) - (int(part.meta.get("end", 0)) - int(part.meta.get("start", 0)))
            return f"line {part.meta['line']}, column {start}: "
    return ""


def _parts(node: exp.Expr) -> Iterator[exp.Expr]:
    yield from node.walk()
