"""Columns that identify the rows of an answer."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from storage_lib.materialized.algebra.query_sources import SourceTable
from storage_lib.materialized.algebra.tree.expressions import conjuncts
from storage_lib.materialized.algebra.tree.joins import flattened
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    InnerJoin,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopRows,
    Window,
)

__all__ = ["key_of", "never_null"]

Key = frozenset[str]


def key_of(relation: Relation, sources: Mapping[str, SourceTable]) -> Key | None:
    """Return columns whose values no two rows of ``relation`` share; None if no such columns are known.

    Values may be NULL; two NULLs count as the same value.
    """
    match relation:
        case Scan():
            names = dict(relation.columns)
            own = sources[relation.table].primary_key
            return frozenset(names[each] for each in own) if own and all(each in names for each in own) else None
        case Project():
            key = key_of(relation.input, sources)
            renamed = {value.name: name for name, value in relation.items if isinstance(value, exp.Column)}
            return frozenset(renamed[each] for each in key) if key is not None and key <= renamed.keys() else None
        case Filter() | InnerJoin():
            return _of_join(*flattened(relation), sources)
        case OuterJoin():
            return _of_outer_join(relation, sources)
        case SemiJoin():
            return key_of(relation.left, sources)
        case Aggregate():
            return frozenset(relation.keys)
        case Window() | TopRows():
            return key_of(relation.input, sources)
        case _:
            return None


def never_null(relation: Relation, sources: Mapping[str, SourceTable]) -> frozenset[str]:
    """Return the columns of ``relation`` that are known to hold no NULL."""
    match relation:
        case Scan():
            source = sources[relation.table]
            given = {name for name, kind in source.columns if kind.upper().endswith(" NOT NULL")}
            return frozenset(name for own, name in relation.columns if own in given or own in source.primary_key)
        case Project():
            inner = never_null(relation.input, sources)
            return frozenset(name for name, value in relation.items if _is_never_null(value, inner))
        case Filter() | InnerJoin():
            inputs, conditions = flattened(relation)
            known = frozenset().union(*(never_null(each, sources) for each in inputs))
            return known | {name for each in conditions for name in _tested(each)}
        case OuterJoin():
            return frozenset() if relation.is_full else never_null(relation.left, sources)
        case SemiJoin():
            return never_null(relation.left, sources)
        case Aggregate():
            inner = never_null(relation.input, sources) & set(relation.keys)
            return inner | {name for name, value in relation.items if isinstance(value, exp.Count | exp.CountIf)}
        case Window() | TopRows():
            return never_null(relation.input, sources)
        case _:
            return frozenset()


def _is_never_null(value: exp.Expr, known: frozenset[str]) -> bool:
    if isinstance(value, exp.Paren):
        return _is_never_null(value.this, known)
    if isinstance(value, exp.Coalesce):
        return any(_is_never_null(each, known) for each in (value.this, *value.expressions))
    if isinstance(value, exp.Column):
        return value.name in known
    return isinstance(value, exp.Literal | exp.Boolean)


def _tested(condition: exp.Expr) -> frozenset[str]:
    """Return the columns whose NULL makes a condition other than true."""
    bare = condition.unnest()
    if isinstance(bare, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE | exp.NEQ):
        return frozenset(
            each.name for each in (bare.this.unnest(), bare.expression.unnest()) if isinstance(each, exp.Column)
        )
    if isinstance(bare, exp.Not) and isinstance(bare.this.unnest(), exp.Is):
        test = bare.this.unnest()
        if isinstance(test.expression, exp.Null) and isinstance(test.this.unnest(), exp.Column):
            return frozenset([test.this.unnest().name])
    return frozenset()


def _of_join(inputs: list[Relation], conditions: list[exp.Expr], sources: Mapping[str, SourceTable]) -> Key | None:
    """Unite the inputs' keys, without those that the other columns determine by equalities."""
    keys = [key_of(each, sources) for each in inputs]
    if any(each is None for each in keys):
        return None
    equal = [pair for each in conditions if (pair := _equality(each)) is not None]
    needed = list(range(len(inputs)))
    for number in reversed(range(len(inputs))):
        others = frozenset().union(*(inputs[each].outputs for each in needed if each != number))
        key = keys[number]
        if len(needed) > 1 and key is not None and key <= _determined(equal, others):
            needed.remove(number)
    return frozenset().union(*(key for number in needed if (key := keys[number]) is not None))


def _of_outer_join(join: OuterJoin, sources: Mapping[str, SourceTable]) -> Key | None:
    left, right = key_of(join.left, sources), key_of(join.right, sources)
    if join.is_full or left is None or right is None:
        return None
    equal = [pair for each in conjuncts(join.condition) if (pair := _equality(each)) is not None]
    if right <= _determined(equal, frozenset(join.left.outputs)):
        return left
    return None


def _determined(equal: list[tuple[str, str]], known: frozenset[str]) -> frozenset[str]:
    found = {b for a, b in equal if a in known} | {a for a, b in equal if b in known}
    return frozenset(found - known)


def _equality(condition: exp.Expr) -> tuple[str, str] | None:
    bare = condition.unnest()
    if isinstance(bare, exp.EQ | exp.NullSafeEQ):
        one, other = bare.this.unnest(), bare.expression.unnest()
        if isinstance(one, exp.Column) and isinstance(other, exp.Column):
            return one.name, other.name
    return None
