"""Filters as immutable values, tested on rows and on statistics.

Filters use SQL's three-valued logic: a comparison with null is neither true nor false, and only rows for which the
whole filter is true pass. ``may_match`` is conservative: it never returns False if a row could pass. Conditions on
single columns are in ``comparisons.py``, ``col("x") > 3`` in ``column_reference.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.table_schema import TableSchema

Stats: TypeAlias = Mapping[str, ColumnStats]
"""Statistics by column name; those of missing columns are unknown."""


class Predicate:
    """A condition on one row. Combine with ``&``, ``|`` and ``~``; build from ``col("name")``."""

    __slots__ = ()

    def __and__(self, other: Predicate) -> Predicate:
        """Return the conjunction of both conditions."""
        return And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        """Return the disjunction of both conditions."""
        return Or(self, other)

    def __invert__(self) -> Predicate:
        """Return the negation; for a comparison with null, neither it nor its negation is true."""
        return Not(self)

    @property
    def columns(self) -> frozenset[str]:
        """Names of all columns in the condition."""
        raise NotImplementedError

    @property
    def names_values(self) -> bool:
        """Whether a column has to equal one of a few values, so that few rows are expected to pass."""
        return False

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return true, false or null for every row."""
        raise NotImplementedError

    def may_match(self, stats: Stats) -> bool:
        """Return False only if no row with these statistics can pass."""
        raise NotImplementedError

    def may_fail(self, stats: Stats) -> bool:
        """Return False only if no row with these statistics can make it false; used by ``~``."""
        raise NotImplementedError

    def restrict_to(self, columns: frozenset[str]) -> Predicate | None:
        """Return the strongest condition only on ``columns`` that every passing row meets; None if there is none."""
        return self if self.columns <= columns else None

    def validated(self, schema: TableSchema) -> Predicate:
        """Convert literals to the columns' types. Raises ``InvalidInputError`` for unknown columns or bad values."""
        raise NotImplementedError

    def mask(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return true for the rows that pass, false for all others, without nulls."""
        return pc.fill_null(self.evaluate(batch), fill_value=False)


@dataclass(frozen=True, slots=True)
class _Pair(Predicate):
    """Base of predicates that combine two conditions."""

    left: Predicate
    right: Predicate

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns

    def validated(self, schema: TableSchema) -> Predicate:
        return replace(self, left=self.left.validated(schema), right=self.right.validated(schema))


@dataclass(frozen=True, slots=True)
class And(_Pair):
    """Both conditions."""

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.and_kleene(self.left.evaluate(batch), self.right.evaluate(batch))

    @property
    def names_values(self) -> bool:
        return self.left.names_values or self.right.names_values

    def may_match(self, stats: Stats) -> bool:
        return self.left.may_match(stats) and self.right.may_match(stats)

    def may_fail(self, stats: Stats) -> bool:
        return self.left.may_fail(stats) or self.right.may_fail(stats)

    def restrict_to(self, columns: frozenset[str]) -> Predicate | None:
        parts = [part for each in (self.left, self.right) if (part := each.restrict_to(columns)) is not None]
        return reduce(And, parts) if parts else None


@dataclass(frozen=True, slots=True)
class Or(_Pair):
    """At least one of two conditions."""

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.or_kleene(self.left.evaluate(batch), self.right.evaluate(batch))

    @property
    def names_values(self) -> bool:
        return self.left.names_values and self.right.names_values

    def may_match(self, stats: Stats) -> bool:
        return self.left.may_match(stats) or self.right.may_match(stats)

    def may_fail(self, stats: Stats) -> bool:
        return self.left.may_fail(stats) and self.right.may_fail(stats)

    def restrict_to(self, columns: frozenset[str]) -> Predicate | None:
        left, right = self.left.restrict_to(columns), self.right.restrict_to(columns)
        return None if left is None or right is None else Or(left, right)


@dataclass(frozen=True, slots=True)
class Not(Predicate):
    """Negation of a condition; null stays null."""

    child: Predicate

    @property
    def columns(self) -> frozenset[str]:
        return self.child.columns

    def evaluate(self, batch: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
        return pc.invert(self.child.evaluate(batch))

    def validated(self, schema: TableSchema) -> Predicate:
        return Not(self.child.validated(schema))

    def may_match(self, stats: Stats) -> bool:
        return self.child.may_fail(stats)

    def may_fail(self, stats: Stats) -> bool:
        return self.child.may_match(stats)


def both(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """Return the conjunction; None is a condition that every row may meet."""
    if left is None or right is None:
        return left if right is None else right
    return And(left, right)
