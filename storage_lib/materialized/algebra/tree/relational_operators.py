"""Operators of relational algebra over bags.

Every column of every operator has a name that occurs nowhere else in the tree (``c1``, ``c2``, ...), so expressions
need no qualifiers and parts of a tree can be combined without collisions. Expressions are sqlglot's, over such names,
and are never changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.query_sources import Moment

Item = tuple[str, exp.Expr]
"""A column and the expression that computes it."""


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """Rows of a source at a moment. ``columns``: (the source's name of a column, its name in the tree).

    ``weight`` names the column of weights in the tree if the moment is DELTA.
    """

    table: str
    columns: tuple[tuple[str, str], ...]
    moment: Moment = Moment.AFTER
    weight: str | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        names = tuple(name for _, name in self.columns)
        return names if self.weight is None else (*names, self.weight)


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """Rows of a common table expression of the statement."""

    name: str
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class OneRow:
    """One row without columns: a SELECT without FROM."""

    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """Computed columns. Columns of the input that are not among the items are dropped."""

    input: Relation
    items: tuple[Item, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Rows for which the condition is true."""

    input: Relation
    condition: exp.Expr

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.input.outputs


@dataclass(frozen=True, slots=True, eq=False)
class InnerJoin:
    """Combinations of rows of all inputs that satisfy all conditions."""

    inputs: tuple[Relation, ...]
    conditions: tuple[exp.Expr, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(name for each in self.inputs for name in each.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class SemiJoin:
    """Rows of ``left`` with a row in ``right`` that satisfies the condition; if ``anti``, those without one."""

    left: Relation
    right: Relation
    condition: exp.Expr
    anti: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.left.outputs


@dataclass(frozen=True, slots=True, eq=False)
class OuterJoin:
    """The inner join, and rows of ``left`` without a match, with NULL in all columns of ``right``.

    ``is_full``: also rows of ``right`` without a match. A RIGHT JOIN is a left one with its sides exchanged.
    """

    left: Relation
    right: Relation
    condition: exp.Expr
    is_full: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.left.outputs, *self.right.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate:
    """One row per combination of the columns ``keys`` with computed aggregates; without keys, exactly one row.

    ``is_distinct``: no aggregates, and no row for an empty input (DISTINCT of rows).
    """

    input: Relation
    keys: tuple[str, ...]
    items: tuple[Item, ...]
    is_distinct: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.keys, *(name for name, _ in self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Rows of the input with computed window functions, which all have the columns ``keys`` as PARTITION BY."""

    input: Relation
    keys: tuple[str, ...]
    items: tuple[Item, ...]

    @property
    def outputs(self) -> tuple[str, ...]:
        return (*self.input.outputs, *(name for name, _ in self.items))


@dataclass(frozen=True, slots=True, eq=False)
class TopRows:
    """The first ``count`` rows in the order of ``order``, in which only rows tie that are equal in all columns."""

    input: Relation
    order: tuple[exp.Expr, ...]
    count: int

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.input.outputs


@dataclass(frozen=True, slots=True, eq=False)
class Union:
    """All rows of all inputs; ``columns`` name the output, the inputs' columns are taken by position."""

    inputs: tuple[Relation, ...]
    outputs: tuple[str, ...]


Relation = (
    Scan | Named | OneRow | Project | Filter | InnerJoin | OuterJoin | SemiJoin | Aggregate | Window | TopRows | Union
)


def inputs_of(relation: Relation) -> tuple[Relation, ...]:
    """Return the operators that feed ``relation``."""
    match relation:
        case Scan() | Named() | OneRow():
            return ()
        case InnerJoin() | Union():
            return relation.inputs
        case SemiJoin() | OuterJoin():
            return relation.left, relation.right
        case _:
            return (relation.input,)


def with_inputs(relation: Relation, inputs: Sequence[Relation]) -> Relation:  # noqa: C901  one case per operator
    """Return ``relation`` over other inputs, which have the same columns."""
    match relation:
        case Scan() | Named() | OneRow():
            return relation
        case InnerJoin():
            return InnerJoin(tuple(inputs), relation.conditions)
        case Union():
            return Union(tuple(inputs), relation.outputs)
        case SemiJoin():
            return SemiJoin(inputs[0], inputs[1], relation.condition, relation.anti)
        case OuterJoin():
            return OuterJoin(inputs[0], inputs[1], relation.condition, relation.is_full)
        case Project():
            return Project(inputs[0], relation.items)
        case Filter():
            return Filter(inputs[0], relation.condition)
        case Aggregate():
            return Aggregate(inputs[0], relation.keys, relation.items, relation.is_distinct)
        case Window():
            return Window(inputs[0], relation.keys, relation.items)
        case TopRows():
            return TopRows(inputs[0], relation.order, relation.count)


def over(tree: Relation, part: Relation, by: Relation) -> Relation:
    """Return ``tree``, a chain of projections and filters over ``part``, over ``by`` instead.

    Raises ``TypeError`` if there is another operator above ``part``.
    """
    if tree is part:
        return by
    if not isinstance(tree, Project | Filter):
        raise TypeError(f"unexpected {type(tree).__name__}")
    return with_inputs(tree, [over(tree.input, part, by)])


def at(relation: Relation, moment: Moment) -> Relation:
    """Return ``relation`` over its sources at ``moment``."""
    if isinstance(relation, Scan):
        return Scan(relation.table, relation.columns, moment)
    return with_inputs(relation, [at(each, moment) for each in inputs_of(relation)])


def sources_of(relation: Relation) -> frozenset[str]:
    """Return the names of the tables that ``relation`` reads."""
    if isinstance(relation, Scan):
        return frozenset([relation.table])
    return frozenset().union(*map(sources_of, inputs_of(relation)))
