"""Operators restricted to the groups that a change touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.incremental.change.reduce import equal_to, reduced
from storage_lib.incremental.tree.expressions import column, columns_in, replaced, same
from storage_lib.incremental.tree.joins import flattened
from storage_lib.incremental.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    Named,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    Union,
    Window,
)

__all__ = ["Touched", "restricted"]


@dataclass(frozen=True, slots=True)
class Touched:
    """Distinct combinations of keys. ``pairs``: (a key's column in the restricted operator, its column in ``rows``)."""

    rows: Named
    pairs: tuple[tuple[str, str], ...]


def restricted(relation: Relation, touched: Touched) -> Relation:
    """Return the rows of ``relation`` whose keys are among the touched ones, with the same columns."""
    return _restricted(relation, touched.rows, {name: column(key) for key, name in touched.pairs})


def _restricted(relation: Relation, rows: Named, keys: dict[str, exp.Expr]) -> Relation:
    """Apply the restriction as early as possible; ``keys``: column of ``rows`` -> expression over ``relation``."""
    read = frozenset().union(*map(columns_in, keys.values()))
    match relation:
        case Project():
            by = dict(relation.items)
            return Project(_restricted(relation.input, rows, _substituted(keys, by)), relation.items)
        case Aggregate() if relation.keys and read <= set(relation.keys):
            return Aggregate(
                _restricted(relation.input, rows, keys), relation.keys, relation.items, relation.is_distinct
            )
        case Window() if read <= set(relation.keys):
            return Window(_restricted(relation.input, rows, keys), relation.keys, relation.items)
        case SemiJoin():
            right = _met(relation.right, rows, keys, [relation.condition])
            return SemiJoin(_restricted(relation.left, rows, keys), right, relation.condition, relation.anti)
        case OuterJoin() if not relation.is_full and read <= set(relation.left.outputs):
            right = _met(relation.right, rows, keys, [relation.condition])
            return OuterJoin(_restricted(relation.left, rows, keys), right, relation.condition)
        case Union():
            return Union(tuple(_branch(each, relation, rows, keys) for each in relation.inputs), relation.outputs)
        case _:
            return _joined(relation, rows, keys)


def _branch(branch: Relation, union: Union, rows: Named, keys: dict[str, exp.Expr]) -> Relation:
    by = {name: column(own) for name, own in zip(union.outputs, branch.outputs, strict=True)}
    return _restricted(branch, rows, _substituted(keys, by))


def _substituted(keys: dict[str, exp.Expr], by: dict[str, exp.Expr]) -> dict[str, exp.Expr]:
    return {name: replaced(value, by) for name, value in keys.items()}


def _joined(relation: Relation, rows: Named, keys: dict[str, exp.Expr]) -> Relation:
    inputs, conditions = flattened(relation) if isinstance(relation, Filter | InnerJoin) else ([relation], [])
    matches = [same(value, column(name)) for name, value in keys.items()]
    items = tuple((name, column(name)) for name in relation.outputs)
    met = [_met(each, rows, keys, conditions) for each in inputs]
    return Project(InnerJoin((rows, *met), (*conditions, *matches)), items)


def _met(relation: Relation, rows: Named, keys: dict[str, exp.Expr], conditions: Sequence[exp.Expr]) -> Relation:
    """Return an input of a join without rows that no row with one of the keys joins."""
    pairs = [
        (equal, column(name))
        for name, value in keys.items()
        for equal in equal_to(value, conditions)
        if columns_in(equal) and columns_in(equal) <= set(relation.outputs)
    ]
    return reduced(relation, rows, pairs)
