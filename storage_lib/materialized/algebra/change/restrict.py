"""Operators restricted to the groups that a change touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.change.reduce import Reduction
from storage_lib.materialized.algebra.tree.expressions import column, columns_in, replaced, same
from storage_lib.materialized.algebra.tree.joins import flattened
from storage_lib.materialized.algebra.tree.relational_operators import (
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


def restricted(relation: Relation, touched: Touched, reduction: Reduction | None = None) -> Relation:
    """Return the rows of ``relation`` whose keys are among the touched ones, with the same columns.

    With a ``reduction``, the other inputs of joins are reduced by the touched keys.
    """
    keys = {name: column(key) for key, name in touched.pairs}
    if reduction is not None:
        known = {name: reduction.types[key] for key, name in touched.pairs if key in reduction.types}
        reduction = Reduction({**reduction.types, **known})
    return _Restriction(touched.rows, reduction).of(relation, keys)


@dataclass(frozen=True, slots=True)
class _Restriction:
    rows: Named
    reduction: Reduction | None

    def of(self, relation: Relation, keys: dict[str, exp.Expr]) -> Relation:
        """Apply the restriction as early as possible; ``keys``: column of ``rows`` -> expression over ``relation``."""
        read = frozenset().union(*map(columns_in, keys.values()))
        match relation:
            case Project():
                by = dict(relation.items)
                return Project(self.of(relation.input, _substituted(keys, by)), relation.items)
            case Aggregate() if relation.keys and read <= set(relation.keys):
                rows = self.of(relation.input, keys)
                return Aggregate(rows, relation.keys, relation.items, relation.is_distinct)
            case Window() if read <= set(relation.keys):
                return Window(self.of(relation.input, keys), relation.keys, relation.items)
            case SemiJoin():
                right = self.met(relation.right, keys, [relation.condition])
                return SemiJoin(self.of(relation.left, keys), right, relation.condition, relation.anti)
            case OuterJoin() if not relation.is_full and read <= set(relation.left.outputs):
                right = self.met(relation.right, keys, [relation.condition])
                return OuterJoin(self.of(relation.left, keys), right, relation.condition)
            case Union():
                return Union(tuple(self.branch(each, relation, keys) for each in relation.inputs), relation.outputs)
            case _:
                return self.joined(relation, keys)

    def branch(self, branch: Relation, union: Union, keys: dict[str, exp.Expr]) -> Relation:
        """Restrict an input of a union."""
        by = {name: column(own) for name, own in zip(union.outputs, branch.outputs, strict=True)}
        return self.of(branch, _substituted(keys, by))

    def joined(self, relation: Relation, keys: dict[str, exp.Expr]) -> Relation:
        """Join the touched keys with the inputs of ``relation``."""
        inputs, conditions = flattened(relation) if isinstance(relation, Filter | InnerJoin) else ([relation], [])
        matches = [same(value, column(name)) for name, value in keys.items()]
        items = tuple((name, column(name)) for name in relation.outputs)
        met = [self.met(each, keys, conditions) for each in inputs]
        return Project(InnerJoin((self.rows, *met), (*conditions, *matches)), items)

    def met(self, relation: Relation, keys: dict[str, exp.Expr], conditions: Sequence[exp.Expr]) -> Relation:
        """Return an input of a join without rows that no row with one of the keys joins."""
        if self.reduction is None:
            return relation
        types, outputs = self.reduction.types, set(relation.outputs)
        pairs = [
            (equal, name)
            for name, value in keys.items()
            # Below a union, a column may be of another type than the key.
            if isinstance(value, exp.Column) and name in types and types.get(value.name) == types[name]
            for equal in self.reduction.equal_to(value.name, conditions)
            if equal in outputs
        ]
        return self.reduction.by(relation, self.rows, pairs)


def _substituted(keys: dict[str, exp.Expr], by: dict[str, exp.Expr]) -> dict[str, exp.Expr]:
    return {name: replaced(value, by) for name, value in keys.items()}
