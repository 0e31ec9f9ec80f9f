"""The change of an answer, computed from the changes of its sources.

A change is a bag of rows with weights: +1 for each occurrence that was added, -1 for each that was removed. Rules are
those of incremental view maintenance on Z-sets (Budiu et al., "DBSP: Automatic Incremental View Maintenance for Rich
Query Languages", VLDB 2023), with one addition: operators that group rows are computed again for the groups that a
change touches, after the change and before it, and the difference is the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from storage_lib.materialized.algebra.change.reduce import Reduction
from storage_lib.materialized.algebra.change.restrict import Touched, restricted
from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.query_sources import Moment
from storage_lib.materialized.algebra.tree.expressions import column
from storage_lib.materialized.algebra.tree.joins import flattened, is_read_at_once
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Named,
    OneRow,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopRows,
    Union,
    Window,
    at,
    sources_of,
)

__all__ = ["ADDED", "REMOVED", "Change", "Differentiation"]

ADDED = exp.cast(exp.Literal.number(1), "bigint")
REMOVED = exp.cast(exp.Literal.number(-1), "bigint")
"""Weights of a row that was added, and of one that was removed."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows with weights: ``rows`` has the operator's columns and the column ``weight``."""

    rows: Relation
    weight: str


@dataclass(frozen=True, slots=True)
class Differentiation:
    """Computes changes, given which sources changed.

    ``shared`` collects the common table expressions of the statement, in the order in which they depend on each other.
    ``reduction``: the changed rows are so few that the other inputs of a join are first reduced by their values.
    """

    changed: frozenset[str]
    names: Names
    reduction: Reduction | None = None
    shared: list[tuple[str, Relation]] = field(default_factory=list)

    def change(self, relation: Relation) -> Change | None:
        """Return the change of ``relation``; None if it reads no changed source."""
        match relation:
            case Scan():
                return self._scan(relation)
            case OneRow() | Named():
                return None
            case Project():
                return self._project(relation)
            case Filter() | InnerJoin():
                return self._inner_join(relation)
            case SemiJoin():
                return self._semi_join(relation)
            case OuterJoin():
                return self._outer_join(relation)
            case Union():
                return self._union(relation)
            case Aggregate() | Window():
                return self._regrouped(relation)
            case TopRows():
                return self._top_rows(relation)

    def touched(self, relation: Aggregate | Window, change: Change) -> Touched:
        """Return the groups of ``relation`` that a change of its input touches."""
        names = tuple(self.names.column() for _ in relation.keys)
        items = tuple((name, column(key)) for name, key in zip(names, relation.keys, strict=True))
        rows = Aggregate(Project(change.rows, items), names, (), is_distinct=True)
        return Touched(self.share(rows), tuple(zip(relation.keys, names, strict=True)))

    def weighted(self, parts: Sequence[tuple[Relation, exp.Expr]], outputs: tuple[str, ...]) -> Change:
        """Return the rows of all parts, each with its weight, under the names ``outputs``."""
        weight = self.names.column()
        weighed = []
        for rows, value in parts:
            names = [name for name in rows.outputs if not (isinstance(value, exp.Column) and name == value.name)]
            items = [(self.names.column(), column(name)) for name in names]
            weighed.append(Project(rows, (*items, (self.names.column(), value))))
        return Change(Union(tuple(weighed), (*outputs, weight)), weight)

    def share(self, rows: Relation) -> Named:
        """Return rows that can be read several times."""
        if isinstance(rows, Named):
            return rows
        name = self.names.relation()
        self.shared.append((name, rows))
        return Named(name, rows.outputs)

    def _shared(self, change: Change) -> Change:
        """Return a change that can be read several times."""
        return change if is_read_at_once(change.rows) else Change(self.share(change.rows), change.weight)

    def _shared_change(self, relation: Relation) -> Change | None:
        change = self.change(relation)
        return None if change is None else self._shared(change)

    def _met(self, relation: Relation, by: Relation, conditions: Sequence[exp.Expr]) -> Relation:
        """Return an input of a join without rows that join none of ``by``, which can be read several times."""
        return relation if self.reduction is None else self.reduction.joined(relation, by, conditions)

    def _scan(self, scan: Scan) -> Change | None:
        if scan.table not in self.changed:
            return None
        weight = self.names.column()
        return Change(Scan(scan.table, scan.columns, Moment.DELTA, weight), weight)

    def _project(self, project: Project) -> Change | None:
        change = self.change(project.input)
        if change is None:
            return None
        return Change(Project(change.rows, (*project.items, (change.weight, column(change.weight)))), change.weight)

    def _inner_join(self, relation: Filter | InnerJoin) -> Change | None:
        """Combine the change of each input with the inputs before it as they are, and those after it as they were."""
        inputs, conditions = flattened(relation)
        parts: list[tuple[Relation, exp.Expr]] = []
        for number, each in enumerate(inputs):
            change = self.change(each)
            if change is None:
                continue
            others = [at(other, Moment.AFTER) for other in inputs[:number]]
            others += [at(other, Moment.BEFORE) for other in inputs[number + 1 :]]
            if len(inputs) == 1:
                return Change(InnerJoin((change.rows,), tuple(conditions)), change.weight)
            change = self._shared(change)
            met = [self._met(other, change.rows, conditions) for other in others]
            joined = InnerJoin((change.rows, *met), tuple(conditions))
            items = tuple((name, column(name)) for name in (*relation.outputs, change.weight))
            parts.append((Project(joined, items), column(change.weight)))
        return self.weighted(parts, relation.outputs) if parts else None

    def _semi_join(self, join: SemiJoin) -> Change | None:
        left, right = self._shared_change(join.left), self._shared_change(join.right)
        return self._matched(join, left, right)

    def _matched(self, join: SemiJoin, left: Change | None, right: Change | None) -> Change | None:
        """Rows of ``left`` that changed, and old ones of ``left`` whose matches may have changed."""
        after = at(join.right, Moment.AFTER)
        parts: list[tuple[Relation, exp.Expr]] = []
        if left is not None:
            met = self._met(after, left.rows, [join.condition])
            parts.append((SemiJoin(left.rows, met, join.condition, join.anti), column(left.weight)))
        if right is not None:
            old = at(join.left, Moment.BEFORE)
            if not is_read_at_once(old):
                old = self._met(old, right.rows, [join.condition])
            touched = self.share(SemiJoin(old, right.rows, join.condition))
            for moment, weight in ((Moment.AFTER, ADDED), (Moment.BEFORE, REMOVED)):
                met = self._met(at(join.right, moment), touched, [join.condition])
                parts.append((SemiJoin(touched, met, join.condition, join.anti), weight))
        return self.weighted(parts, join.outputs) if parts else None

    def _outer_join(self, join: OuterJoin) -> Change | None:
        left, right = self._shared_change(join.left), self._shared_change(join.right)
        parts: list[tuple[Relation, exp.Expr]] = []
        ordered = tuple((name, column(name)) for name in join.outputs)
        for change, other in (
            (left, at(join.right, Moment.AFTER)),
            (right, at(join.left, Moment.BEFORE)),
        ):
            if change is not None:
                met = self._met(other, change.rows, [join.condition])
                rows = InnerJoin((change.rows, met), (join.condition,))
                parts.append((Project(rows, (*ordered, (change.weight, column(change.weight)))), column(change.weight)))
        unmatched = self._matched(SemiJoin(join.left, join.right, join.condition, anti=True), left, right)
        if unmatched is not None:
            parts.append(self._extended(unmatched, join.right, ordered))
        if join.is_full:
            unmatched = self._matched(SemiJoin(join.right, join.left, join.condition, anti=True), right, left)
            if unmatched is not None:
                parts.append(self._extended(unmatched, join.left, ordered))
        return self.weighted(parts, join.outputs) if parts else None

    def _extended(
        self, change: Change, other: Relation, ordered: tuple[tuple[str, exp.Expr], ...]
    ) -> tuple[Relation, exp.Expr]:
        """Rows with NULL in the other side's columns, which an outer join with no rows gives with their types."""
        nothing = Filter(at(other, Moment.AFTER), exp.false())
        rows = OuterJoin(change.rows, nothing, exp.true())
        return Project(rows, (*ordered, (change.weight, column(change.weight)))), column(change.weight)

    def _union(self, union: Union) -> Change | None:
        changes = [self.change(each) for each in union.inputs]
        if not any(changes):
            return None
        parts: list[tuple[Relation, exp.Expr]] = []
        for each, change in zip(union.inputs, changes, strict=True):
            if change is None:
                # No rows, but the types of this input: the union has the common type of all its inputs.
                parts.append((Filter(at(each, Moment.AFTER), exp.false()), ADDED))
            else:
                parts.append((change.rows, column(change.weight)))
        return self.weighted(parts, union.outputs)

    def _regrouped(self, relation: Aggregate | Window) -> Change | None:
        change = self.change(relation.input)
        if change is None:
            return None
        parts: list[tuple[Relation, exp.Expr]] = []
        touched = self.touched(relation, change) if relation.keys else None
        for moment, weight in ((Moment.AFTER, ADDED), (Moment.BEFORE, REMOVED)):
            rows = at(relation, moment)
            parts.append((rows if touched is None else restricted(rows, touched, self.reduction), weight))
        return self.consolidated(self.weighted(parts, relation.outputs), relation.outputs)

    def _top_rows(self, top: TopRows) -> Change | None:
        """Compute the first rows twice: which rows follow a removed one is only known to those who read all."""
        if not sources_of(top) & self.changed:
            return None
        parts = [(at(top, Moment.AFTER), ADDED), (at(top, Moment.BEFORE), REMOVED)]
        return self.consolidated(self.weighted(parts, top.outputs), top.outputs)

    def consolidated(self, change: Change, outputs: tuple[str, ...]) -> Change:
        """Return the change with one row, of weight other than 0, per distinct row."""
        weight = self.names.column()
        total = exp.Sum(this=column(change.weight))
        rows = Filter(
            Aggregate(change.rows, outputs, ((weight, total),)),
            exp.NEQ(this=column(weight), expression=exp.Literal.number(0)),
        )
        return Change(rows, weight)
