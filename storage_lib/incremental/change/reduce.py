"""Operators without rows that cannot meet any row of a small relation: a semi-join, moved towards the sources.

An engine that joins a small change with a large source shuffles the source, if it overestimates the change or can only
build its hash table from the other side. Reduced by the change's values first, few rows of the source are left. The
reduction is only a help: it may keep rows that meet nothing, since the join itself is still computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from storage_lib.incremental.read.scope import type_of
from storage_lib.incremental.tree.expressions import columns_in, columns_in_all, conjunction, conjuncts, replaced
from storage_lib.incremental.tree.joins import flattened, is_read_at_once
from storage_lib.incremental.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    OneRow,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    Window,
)

__all__ = ["Pairs", "equal_to", "joined_pairs", "reduced"]

Pairs = Sequence[tuple[exp.Expr, exp.Expr]]
"""Expressions over a relation, and the ones over the small relation that they have to be equal to."""


def joined_pairs(relation: Relation, small: Relation, conditions: Iterable[exp.Expr]) -> Pairs:
    """Return what has to be equal in rows of both relations, by the ``conditions`` of a join of these and others."""
    parts = [part for each in conditions for part in conjuncts(each)]
    theirs, values, pairs = set(small.outputs), [], []
    for each in (side for sides in _equalities(parts) for side in sides):
        if columns_in(each) and columns_in(each) <= theirs and each not in values:
            values.append(each)
            pairs += [(own, each) for own in equal_to(each, parts) if _reads_only(own, relation)]
    return pairs


def equal_to(value: exp.Expr, conditions: Iterable[exp.Expr], *, is_converted: bool = False) -> list[exp.Expr]:
    """Return expressions that equal ``value`` in every row for which all conditions hold; it is not NULL then.

    ``is_converted``: ``value`` is equal to the wanted one only after a conversion. Then, and for expressions that are
    equal by way of others, equality holds for values of one type only: ``'1.0' = 1`` and ``1 = '1'``.
    """
    sides = _equalities(part for each in conditions for part in conjuncts(each))
    found = [value]
    for known in found:
        is_free = known is value and not is_converted
        for one, other in sides:
            for each, equal in ((one, other), (other, one)):
                if each == known and equal not in found and (is_free or _are_of_one_type(known, equal)):
                    found.append(equal)
    return found[1:]


def _equalities(parts: Iterable[exp.Expr]) -> list[tuple[exp.Expr, exp.Expr]]:
    return [(part.this.unnest(), part.expression.unnest()) for part in parts if isinstance(part, exp.EQ)]


def _are_of_one_type(one: exp.Expr, other: exp.Expr) -> bool:
    kind = type_of(one)
    return kind is not None and kind == type_of(other)


def reduced(relation: Relation, small: Relation, pairs: Pairs) -> Relation:
    """Return ``relation`` with fewer rows: those for which a row of ``small`` has all equal values stay as they are.

    Others may be missing, or have other values, which no row of ``small`` equals either. ``small`` is read several
    times.
    """
    if not pairs or isinstance(relation, OneRow):
        return relation
    if is_read_at_once(relation):
        # Its filters stay first: they may leave out values that cannot be converted.
        return _met(relation, small, pairs)
    read = columns_in_all(own for own, _ in pairs)
    match relation:
        case Project():
            by = dict(relation.items)
            below = [(replaced(own, by), theirs) for own, theirs in pairs]
            return Project(reduced(relation.input, small, below), relation.items)
        case Aggregate() if relation.keys and read <= set(relation.keys):
            return Aggregate(reduced(relation.input, small, pairs), relation.keys, relation.items, relation.is_distinct)
        case Window() if read <= set(relation.keys):
            return Window(reduced(relation.input, small, pairs), relation.keys, relation.items)
        case Filter() | InnerJoin():
            inputs, conditions = flattened(relation)
            if len(inputs) == 1:
                return InnerJoin((reduced(inputs[0], small, pairs),), tuple(conditions))
            return InnerJoin(tuple(_input(each, small, pairs, conditions) for each in inputs), tuple(conditions))
        case SemiJoin():
            right = _other_side(relation.right, small, pairs, relation.condition)
            return SemiJoin(reduced(relation.left, small, pairs), right, relation.condition, relation.anti)
        case OuterJoin() if not relation.is_full and read <= set(relation.left.outputs):
            right = _other_side(relation.right, small, pairs, relation.condition)
            return OuterJoin(reduced(relation.left, small, pairs), right, relation.condition)
        case _:
            return _met(relation, small, pairs)


def _met(relation: Relation, small: Relation, pairs: Pairs) -> Relation:
    equal = [exp.EQ(this=exp.paren(own), expression=exp.paren(theirs)) for own, theirs in pairs]
    return SemiJoin(relation, small, conjunction(equal))


def _input(relation: Relation, small: Relation, pairs: Pairs, conditions: Sequence[exp.Expr]) -> Relation:
    own = [pair for pair in pairs if _reads_only(pair[0], relation)]
    return _other_side(reduced(relation, small, own), small, pairs, *conditions)


def _other_side(relation: Relation, small: Relation, pairs: Pairs, *conditions: exp.Expr) -> Relation:
    """Reduce an input of a join by values of another one."""
    equal = [(each, theirs) for own, theirs in pairs for each in equal_to(own, conditions, is_converted=True)]
    return reduced(relation, small, [pair for pair in equal if _reads_only(pair[0], relation)])


def _reads_only(value: exp.Expr, relation: Relation) -> bool:
    return bool(columns_in(value)) and columns_in(value) <= set(relation.outputs)
