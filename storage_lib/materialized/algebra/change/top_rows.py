"""The change of the first rows of an order, from those that are stored.

Every row that is not stored comes after the last stored one, b, if as many rows are stored as the answer may have. So
the stored rows with the change are the first rows of the new answer, up to those that come after b. If rows were
removed and too few are left before b, the input is read again. This is the rule of top-k views with k' = k (Yi et al.,
"Efficient Maintenance of Materialized Top-k Views", ICDE 2003).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.change.differentiate import ADDED, REMOVED, Change, Differentiation
from storage_lib.materialized.algebra.change.restrict import Touched
from storage_lib.materialized.algebra.query_sources import Moment
from storage_lib.materialized.algebra.tree.expressions import column, conjunction, replaced, same
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Item,
    Named,
    Project,
    Relation,
    SemiJoin,
    TopRows,
    Window,
    at,
)

__all__ = ["StoredTopRows"]

_NONE = exp.cast(exp.Literal.number(0), "bigint")


@dataclass(frozen=True, slots=True)
class StoredTopRows:
    """Computes the change of ``top``; ``stored`` are its rows before the change, with columns in the same order."""

    top: TopRows
    stored: Named
    rules: Differentiation

    def change(self) -> Change | None:
        """Return the change, from the change of the input; None if the input reads no changed source."""
        change = self.rules.change(self.top.input)
        if change is None:
            return None
        outputs = self.top.outputs
        both = self.rules.weighted([(self.stored, ADDED), (change.rows, column(change.weight))], outputs)
        counted = self.rules.consolidated(both, outputs)
        # Weights below 0 are those of rows that were removed and are not stored.
        positive = exp.GT(this=column(counted.weight), expression=exp.Literal.number(0))
        return self._chosen(Change(Filter(counted.rows, positive), counted.weight))

    def change_of_groups(self, new: Relation, touched: Touched) -> Change:
        """Return the change, from the rows of the input whose groups a change touches, after the change.

        ``touched`` has pairs with columns of ``stored``. Rows of other groups are what they were.
        """
        equal = conjunction(same(column(own), column(key)) for own, key in touched.pairs)
        remaining = SemiJoin(self.stored, touched.rows, equal, anti=True)
        return self._chosen(self.rules.weighted([(remaining, ADDED), (new, ADDED)], self.top.outputs))

    def _chosen(self, candidates: Change) -> Change:
        """Choose the first of the candidates, which are all rows up to the last stored one, and some after it."""
        rules, outputs = self.rules, self.top.outputs
        is_last, total, taken = (rules.names.column() for _ in range(3))
        rows = Project(candidates.rows, (*_same(candidates.rows.outputs), (is_last, exp.false())))
        last = Project(self._last(), (*_same(self.stored.outputs), (is_last, exp.true())))
        both = rules.weighted([(rows, column(candidates.weight)), (last, _NONE)], (*outputs, is_last))
        # The last stored row comes after all rows that equal it.
        order = (*self.top.order, exp.Ordered(this=column(is_last), nulls_first=True))
        sums = Window(both.rows, (), ((total, _sum_so_far(both.weight, order)),))
        room = exp.Sub(
            this=exp.Literal.number(self.top.count),
            expression=exp.paren(exp.Sub(this=column(total), expression=column(both.weight))),
        )
        needed = exp.or_(column(is_last), exp.GT(this=room, expression=exp.Literal.number(0)))
        counted = rules.share(Filter(sums, needed))
        are_few = exp.LT(this=column(total), expression=exp.Literal.number(self.top.count))
        one = rules.names.column()
        missing = rules.share(Project(Filter(counted, exp.and_(column(is_last), are_few)), ((one, ADDED),)))
        first = SemiJoin(Filter(counted, exp.Not(this=column(is_last))), missing, exp.true(), anti=True)
        weighed = exp.Least(this=column(both.weight), expressions=[room])
        # A cross join with no row is dropped before the input is read, as EXISTS is not.
        again = Project(InnerJoin((missing, at(self.top, Moment.AFTER))), _same(outputs))
        parts: list[tuple[Relation, exp.Expr]] = [
            (Project(first, (*_same(outputs), (taken, weighed))), column(taken)),
            (again, ADDED),
            (self.stored, REMOVED),
        ]
        return rules.weighted(parts, outputs)

    def _last(self) -> Relation:
        """Return the last stored row if there may be others after it that are not stored; no row otherwise."""
        by = {name: column(own) for name, own in zip(self.top.outputs, self.stored.outputs, strict=True)}
        backwards = tuple(_backwards(replaced(each, by)) for each in self.top.order)
        count = self.rules.names.column()
        stored_count = Aggregate(self.stored, (), ((count, exp.Count(this=exp.Star())),))
        is_full = exp.EQ(this=column(count), expression=exp.Literal.number(self.top.count))
        return InnerJoin((TopRows(self.stored, backwards, 1), stored_count), (is_full,))


def _same(names: tuple[str, ...]) -> tuple[Item, ...]:
    return tuple((name, column(name)) for name in names)


def _backwards(ordered: exp.Expr) -> exp.Expr:
    return exp.Ordered(
        this=ordered.this, desc=not ordered.args.get("desc"), nulls_first=not ordered.args.get("nulls_first")
    )


def _sum_so_far(weight: str, order: tuple[exp.Expr, ...]) -> exp.Expr:
    frame = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
    return exp.Window(
        this=exp.Sum(this=column(weight)),
        # One partition; Spark warns of each window that has none.
        partition_by=[exp.Is(this=column(weight), expression=exp.null())],
        order=exp.Order(expressions=list(order)),
        spec=frame,
        over="OVER",
    )
