"""What the parts of a query's reader ask of the whole: the rows of a sub-query, and new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.read.scope import Scope
from storage_lib.materialized.algebra.tree.relational_operators import Relation


@dataclass(frozen=True, slots=True)
class Shared:
    """A common table expression: its query, its column names if given, and the expressions that it may read."""

    query: exp.Expr
    labels: Sequence[str]
    shared: Mapping[str, Shared]


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's rows. ``labels`` are the names of ``relation.outputs``.

    ``correlated``: conditions that also read columns of an outer query, and are not applied yet.
    """

    relation: Relation
    labels: tuple[str, ...]
    correlated: tuple[exp.Expr, ...] = ()


class QueryReader(Protocol):
    """Reads queries and their parts, see ``Reader``."""

    @property
    def names(self) -> Names:
        """New names of relations and columns."""
        ...

    def read(self, query: exp.Expr, outer: Scope | None = None, shared: Mapping[str, Shared] | None = None) -> Answer:
        """Return the rows of a query. ``shared``: common table expressions in sight."""
        ...

    def rows_of(self, select: exp.Select, scope: Scope, shared: Mapping[str, Shared]) -> Relation:
        """Return the rows of FROM and its joins, and add their columns to ``scope``."""
        ...
