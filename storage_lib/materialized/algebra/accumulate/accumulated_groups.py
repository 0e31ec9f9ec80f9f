"""The groups of a query that accumulators keep, and the operators above and below them.

An aggregate is kept if each of its items is a function of sums to which a change only adds: the number of rows of a
group, and for each argument the sum and the number of its values that are not NULL. The operators above have to be
projections and filters, so that the rows of the answer are functions of single groups.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.read.functions import is_exact
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    Project,
    Relation,
    over,
)

__all__ = ["AccumulatedGroups", "Form", "Item", "accumulated_groups"]


class Form(enum.Enum):
    """What an item computes from the accumulators of its argument."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"


@dataclass(frozen=True, slots=True)
class Item:
    """An aggregate of the query: its column, its form, and the argument; None counts rows."""

    name: str
    form: Form
    argument: exp.Expr | None
    aggregate: exp.Expr


@dataclass(frozen=True, slots=True)
class AccumulatedGroups:
    """The aggregate ``groups`` of ``tree``, of which every item is kept by accumulators."""

    tree: Relation
    groups: Aggregate
    items: tuple[Item, ...]

    @property
    def is_global(self) -> bool:
        """Whether the query groups by nothing: one group, which exists even without rows."""
        return not self.groups.keys

    def over(self, groups: Relation) -> Relation:
        """Return the operators above the groups, over other rows with the groups' columns."""
        return over(self.tree, self.groups, groups)


def accumulated_groups(tree: Relation) -> AccumulatedGroups | None:
    """Return the groups of a tree that accumulators can keep; None if there are none."""
    groups = tree
    while isinstance(groups, Project | Filter):
        groups = groups.input
    if not isinstance(groups, Aggregate):
        return None
    items = [_item(name, value) for name, value in groups.items]
    found = tuple(each for each in items if each is not None)
    return AccumulatedGroups(tree, groups, found) if len(found) == len(items) else None


def _item(name: str, aggregate: exp.Expr) -> Item | None:
    condition, function = None, aggregate
    if isinstance(aggregate, exp.Filter):
        condition, function = aggregate.expression.this, aggregate.this
    argument = function.this
    if isinstance(argument, exp.Distinct) or function.args.get("expressions"):
        return None
    if isinstance(function, exp.Count):
        counted = None if isinstance(argument, exp.Star) else argument
        if counted is None and condition is not None:
            counted = exp.Literal.number(1)
        return Item(name, Form.COUNT, _where(counted, condition), aggregate)
    if isinstance(function, exp.CountIf):
        counted = _where(exp.Literal.number(1), argument)
        return Item(name, Form.COUNT, _where(counted, condition), aggregate)
    if isinstance(function, exp.Sum | exp.Avg) and is_exact(aggregate):
        form = Form.SUM if isinstance(function, exp.Sum) else Form.AVG
        return Item(name, form, _where(argument, condition), aggregate)
    return None


def _where(argument: exp.Expr | None, condition: exp.Expr | None) -> exp.Expr | None:
    if argument is None or condition is None:
        return argument
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())])
