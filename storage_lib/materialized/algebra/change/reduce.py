"""Operators without rows that cannot meet any row of a small relation: a semi-join, moved towards the sources.

An engine that joins a small change with a large source shuffles the source, if it overestimates the change or can only
build its hash table from the other side. Reduced by the change's values first, few rows of the source are left. The
reduction is only a help: it may keep rows that meet nothing, since the join itself is still computed.

Only columns that hold values of sources unchanged, and of one type, are compared. So no comparison converts a value,
which could fail for a row that the query never converts, or find two values equal that the query finds different.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.tree.expressions import column, conjunction, conjuncts
from storage_lib.materialized.algebra.tree.joins import flattened, is_read_at_once
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    OuterJoin,
    Project,
    Relation,
    SemiJoin,
    Window,
)

__all__ = ["Pairs", "Reduction"]

Pairs = Sequence[tuple[str, str]]
"""Columns of a relation, and the ones of the small relation that they have to be equal to."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """Reduces relations. ``types`` as of ``column_types``; other columns reduce nothing."""

    types: Mapping[str, str]

    def joined(self, relation: Relation, small: Relation, conditions: Iterable[exp.Expr]) -> Relation:
        """Return an input of a join with ``small`` and others, reduced; all ``conditions`` hold for the join's rows."""
        parts, own = list(conditions), set(relation.outputs)
        pairs = [(each, theirs) for theirs in small.outputs for each in self.equal_to(theirs, parts) if each in own]
        return self.by(relation, small, pairs)

    def equal_to(self, name: str, conditions: Iterable[exp.Expr]) -> list[str]:
        """Return the columns that equal a column, and are not NULL, in rows for which all conditions hold."""
        kind = self.types.get(name)
        if kind is None:
            return []
        sides = [
            (part.this.unnest().name, part.expression.unnest().name)
            for each in conditions
            for part in conjuncts(each)
            if isinstance(part, exp.EQ) and self._are_plain(part, kind)
        ]
        found = [name]
        for known in found:
            for one, other in sides:
                found += [b for a, b in ((one, other), (other, one)) if a == known and b not in found]
        return found[1:]

    def by(self, relation: Relation, small: Relation, pairs: Pairs) -> Relation:
        """Return ``relation`` with fewer rows: those for which a row of ``small`` has all equal values stay unchanged.

        Others may be missing, or have other values, which no row of ``small`` equals either. ``small`` is read several
        times.
        """
        if not pairs:
            return relation
        if is_read_at_once(relation):
            return _met(relation, small, pairs)
        read = {own for own, _ in pairs}
        match relation:
            case Project():
                names = {name: value.name for name, value in relation.items if isinstance(value, exp.Column)}
                if not read <= names.keys():
                    return _met(relation, small, pairs)
                below = [(names[own], theirs) for own, theirs in pairs]
                return Project(self.by(relation.input, small, below), relation.items)
            case Aggregate() if relation.keys and read <= set(relation.keys):
                rows = self.by(relation.input, small, pairs)
                return Aggregate(rows, relation.keys, relation.items, relation.is_distinct)
            case Window() if read <= set(relation.keys):
                return Window(self.by(relation.input, small, pairs), relation.keys, relation.items)
            case Filter() | InnerJoin():
                inputs, conditions = flattened(relation)
                rows_of = [self._input(each, small, pairs, conditions) for each in inputs]
                return InnerJoin(tuple(rows_of), tuple(conditions))
            case SemiJoin() if relation.right is not small:
                right = self.other_side(relation.right, small, pairs, [relation.condition])
                return SemiJoin(self.by(relation.left, small, pairs), right, relation.condition, relation.anti)
            case OuterJoin() if not relation.is_full and read <= set(relation.left.outputs):
                right = self.other_side(relation.right, small, pairs, [relation.condition])
                return OuterJoin(self.by(relation.left, small, pairs), right, relation.condition)
            case _:
                return _met(relation, small, pairs)

    def other_side(self, relation: Relation, small: Relation, pairs: Pairs, conditions: Sequence[exp.Expr]) -> Relation:
        """Return an input of a join, reduced by what has to equal the columns of another input in ``pairs``."""
        outputs = set(relation.outputs)
        equal = [(each, theirs) for own, theirs in pairs for each in self.equal_to(own, conditions) if each in outputs]
        return self.by(relation, small, equal)

    def _input(self, relation: Relation, small: Relation, pairs: Pairs, conditions: Sequence[exp.Expr]) -> Relation:
        outputs = set(relation.outputs)
        reduced = self.by(relation, small, [pair for pair in pairs if pair[0] in outputs])
        return self.other_side(reduced, small, pairs, conditions)

    def _are_plain(self, equality: exp.Expr, kind: str) -> bool:
        sides = [side.unnest() for side in (equality.this, equality.expression)]
        return all(isinstance(side, exp.Column) and self.types.get(side.name) == kind for side in sides)


def _met(relation: Relation, small: Relation, pairs: Pairs) -> Relation:
    equal = [exp.EQ(this=column(own), expression=column(theirs)) for own, theirs in pairs]
    return SemiJoin(relation, small, conjunction(equal))
