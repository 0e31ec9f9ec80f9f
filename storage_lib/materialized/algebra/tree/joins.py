"""Order and parts of inner joins."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from storage_lib.materialized.algebra.tree.expressions import columns_in
from storage_lib.materialized.algebra.tree.relational_operators import Filter, InnerJoin, Named, Project, Relation, Scan

__all__ = ["connected", "flattened", "is_read_at_once"]


def flattened(relation: Relation) -> tuple[list[Relation], list[exp.Expr]]:
    """Return the inputs and conditions of nested inner joins and filters."""
    if isinstance(relation, Filter):
        inputs, conditions = flattened(relation.input)
        return inputs, [*conditions, relation.condition]
    if isinstance(relation, InnerJoin):
        inputs, conditions = [], list(relation.conditions)
        for each in relation.inputs:
            more, also = flattened(each)
            inputs, conditions = [*inputs, *more], [*conditions, *also]
        return inputs, conditions
    return [relation], []


def connected(inputs: Sequence[Relation], conditions: Sequence[exp.Expr]) -> list[Relation]:
    """Return the inputs in an order in which each has a condition with an earlier one, as far as there is one.

    Spark joins in the order of FROM. The first input stays first: it is the small one of a change.
    """
    read = [columns_in(each) for each in conditions]
    left, ordered = list(inputs[1:]), list(inputs[:1])
    known = set(ordered[0].outputs)
    while left:
        following = next(
            (each for each in left if any(known & names and names & set(each.outputs) for names in read)), left[0]
        )
        left.remove(following)
        ordered.append(following)
        known |= set(following.outputs)
    return ordered


def is_read_at_once(relation: Relation) -> bool:
    """Return whether the rows are those of one source or common table expression, filtered and projected."""
    match relation:
        case Scan() | Named():
            return True
        case Project() | Filter():
            return is_read_at_once(relation.input)
        case InnerJoin(inputs=(only,)):
            return is_read_at_once(only)
        case _:
            return False
