"""Statements that keep the accumulators of a query, and compute the answer from them.

    change of the sources ─▶ change of the state ─▶ added to the old state ─▶ new state
    new state, old state, of the groups that changed ─▶ change of the answer

A state has the columns ``columns``: the keys of the groups, the number of rows (``row_count``), and for each aggregate
the sum of its argument and the number of values that are not NULL. Only integers and decimals are summed, as decimals
of 38 digits, so that no order of additions gives another sum.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.accumulate.accumulated_groups import AccumulatedGroups, Form, Item
from storage_lib.materialized.algebra.accumulate.accumulator_types import (
    ItemTypes,
    averaged_sum_type,
    factor_type,
    inexact_reason,
    sum_type,
)
from storage_lib.materialized.algebra.change.differentiate import ADDED, REMOVED, Differentiation
from storage_lib.materialized.algebra.change.reduce import Reduction
from storage_lib.materialized.algebra.derive.maintenance import MaintainedOperator, maintained
from storage_lib.materialized.algebra.names import Names
from storage_lib.materialized.algebra.query_sources import Moment, Views
from storage_lib.materialized.algebra.render.dialect import SPARK, Dialect
from storage_lib.materialized.algebra.render.statement import Renderer
from storage_lib.materialized.algebra.render.steps import Steps
from storage_lib.materialized.algebra.tree.expressions import column
from storage_lib.materialized.algebra.tree.relational_operators import (
    Aggregate,
    Filter,
    Project,
    Relation,
    Scan,
    Union,
    at,
)
from storage_lib.materialized.algebra.tree.relational_operators import (
    Item as Computed,
)

__all__ = ["ROW_COUNT", "Accumulators"]

ROW_COUNT = "row_count"
_FIRST_NEW_NAME = 2_000_000


@dataclass(frozen=True, slots=True)
class Accumulators:
    """Statements for one query. ``labels`` are the columns of its answer, ``column_types`` those of the query's tree.

    Relations of states are given as SQL text, as views are. ``types`` are those of ``item_types``, by item.
    """

    groups: AccumulatedGroups
    labels: tuple[str, ...]
    column_types: Mapping[str, str]

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The state's columns for the keys of the groups; a key may be NULL. Without keys there is one group."""
        return tuple(f"key_{number}" for number, _ in enumerate(self.groups.groups.keys, 1))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a state: keys, ``row_count``, then sums and counts."""
        return (*self.key_columns, ROW_COUNT, *self._sums, *self._counts)

    @property
    def item_names(self) -> tuple[str, ...]:
        """Names of the aggregates of which ``typed`` needs the types."""
        return tuple(each.name for each in self._summed)

    def typed(self, views: Views, *, dialect: Dialect = SPARK) -> str:
        """Return a SELECT whose column types are those of the keys, then of each item's argument and value.

        It need not be run: an engine that analyses it knows the types. There is always a column ``row_count``.
        """
        groups = self.groups.groups
        items: list[Computed] = [(ROW_COUNT, exp.Count(this=exp.Star()))]
        for each in self._summed:
            items.append((f"argument_{each.name}", exp.Max(this=_argument(each))))
            items.append((f"value_{each.name}", each.aggregate))
        whole = Aggregate(at(groups.input, Moment.AFTER), groups.keys, tuple(items))
        return self._named(whole, (*self.key_columns, *(name for name, _ in items)), dialect.renderer(views))

    def refusal(self, types: Mapping[str, ItemTypes]) -> str | None:
        """Return why accumulators would not give the digits of the query; None if they do."""
        written = {each.name: each for each in self._summed}
        sums = {name: types[name] for name, each in written.items() if each.form is Form.SUM}
        averages = {name: types[name] for name, each in written.items() if each.form is Form.AVG}
        return inexact_reason(
            {f"{written[name].aggregate.sql('spark')}:": each for name, each in sums.items()},
            {f"{written[name].aggregate.sql('spark')}:": each for name, each in averages.items()},
        )

    def whole(self, views: Views, types: Mapping[str, ItemTypes], *, dialect: Dialect = SPARK) -> str:
        """Return a SELECT of the state of the sources at ``Moment.AFTER``."""
        groups = self.groups.groups
        items: list[Computed] = [(ROW_COUNT, exp.Count(this=exp.Star()))]
        for each in self._summed:
            total = _zero_if_null(exp.cast(exp.Sum(this=_argument(each)), _sum_type(types[each.name])))
            items.append((_sum(each), exp.cast(total, _sum_type(types[each.name]))))
        items += [(_count(each), exp.Count(this=_argument(each))) for each in self._counted]
        whole = Aggregate(at(groups.input, Moment.AFTER), groups.keys, tuple(items))
        return self._named(whole, self.columns, dialect.renderer(views))

    def change(
        self,
        views: Views,
        changed: Collection[str],
        types: Mapping[str, ItemTypes],
        *,
        dialect: Dialect = SPARK,
        are_few: bool = True,
        prefix: str = "",
    ) -> Steps | None:
        """Return a SELECT of what the sources' changes add to the state, one row per group that they touch.

        Groups to which nothing is added are left out. ``are_few`` and ``prefix`` as for ``CompiledQuery.delta``. None
        if no source of the query is among ``changed``.
        """
        groups = self.groups.groups
        rules = Differentiation(
            frozenset(changed), Names(_FIRST_NEW_NAME), Reduction(self.column_types) if are_few else None
        )
        change = rules.change(groups.input)
        if change is None:
            return None
        weight = column(change.weight)
        items: list[Computed] = [(ROW_COUNT, _bigint(_zero_if_null(exp.Sum(this=weight))))]
        for each in self._summed:
            factor = exp.cast(exp.paren(_argument(each)), factor_type(types[each.name].argument))
            product = exp.Mul(this=factor, expression=exp.cast(weight.copy(), "DECIMAL(19,0)"))
            total = _zero_if_null(exp.cast(exp.Sum(this=product), _sum_type(types[each.name])))
            items.append((_sum(each), exp.cast(total, _sum_type(types[each.name]))))
        for each in self._counted:
            is_known = exp.Not(this=exp.Is(this=exp.paren(_argument(each)), expression=exp.null()))
            counted = exp.Case(ifs=[exp.If(this=is_known, true=weight.copy())], default=exp.Literal.number(0))
            items.append((_count(each), _bigint(_zero_if_null(exp.Sum(this=counted)))))
        added = Aggregate(change.rows, groups.keys, tuple(items))
        differs = exp.or_(*(_not_zero(name) for name, _ in items), copy=False)
        renderer = dialect.renderer(views, prefix)
        names = [(own, renderer.name(name)) for own, name in zip(added.outputs, self.columns, strict=True)]
        return Steps(renderer, tuple(rules.shared), Filter(added, differs), tuple(names))

    def sum_of_states(
        self, states: Collection[str], types: Mapping[str, ItemTypes], *, dialect: Dialect = SPARK
    ) -> str:
        """Return a SELECT of the state to which states and changes of states add up; ``row_count`` may be 0."""
        names = self.columns
        keys = names[: len(self.key_columns)]
        of_sums = {_sum(each): _sum_type(types[each.name]) for each in self._summed}
        items: list[Computed] = []
        for name in names[len(keys) :]:
            total: exp.Expr = exp.Sum(this=column(name))
            items.append((name, exp.cast(total, of_sums.get(name, "BIGINT"))))
        parts = tuple(self._state(each) for each in states)
        return self._named(Aggregate(Union(parts, names), keys, tuple(items)), names, dialect.renderer(_as_text))

    def answer(self, state: str, types: Mapping[str, ItemTypes], *, dialect: Dialect = SPARK) -> str:
        """Return a SELECT of the answer of the groups in a state."""
        return self._named(self._answer(state, types), self.labels, dialect.renderer(_as_text))

    def answer_change(self, old: str, new: str, types: Mapping[str, ItemTypes], *, dialect: Dialect = SPARK) -> str:
        """Return a SELECT of the answer's change, with ``_weight``, between two states of the same groups."""
        rules = Differentiation(frozenset(), Names(_FIRST_NEW_NAME))
        parts = [(self._answer(new, types), ADDED), (self._answer(old, types), REMOVED)]
        outputs = tuple(rules.names.column() for _ in self.labels)
        change = rules.weighted(parts, outputs)
        return self._named(change.rows, (*self.labels, "_weight"), dialect.renderer(_as_text))

    @property
    def operators(self) -> tuple[MaintainedOperator, ...]:
        """How each part of the query is maintained with the accumulators."""
        return maintained(self.groups.tree, self.groups.groups)

    @property
    def _summed(self) -> tuple[Item, ...]:
        return tuple(each for each in self.groups.items if each.form is not Form.COUNT)

    @property
    def _counted(self) -> tuple[Item, ...]:
        return tuple(each for each in self.groups.items if each.argument is not None)

    @property
    def _sums(self) -> tuple[str, ...]:
        return tuple(map(_sum, self._summed))

    @property
    def _counts(self) -> tuple[str, ...]:
        return tuple(map(_count, self._counted))

    def _state(self, relation: str) -> Scan:
        return Scan(relation, tuple((name, name) for name in self.columns))

    def _answer(self, state: str, types: Mapping[str, ItemTypes]) -> Relation:
        rows: Relation = self._state(state)
        if not self.groups.is_global:
            rows = Filter(rows, _not_zero(ROW_COUNT))
        keys = zip(self.groups.groups.keys, self.key_columns, strict=True)
        items = [(name, column(own)) for name, own in keys]
        items += [(each.name, _value(each, types)) for each in self.groups.items]
        return self.groups.over(Project(rows, tuple(items)))

    def _named(self, rows: Relation, names: Collection[str], renderer: Renderer) -> str:
        items = ", ".join(f"{own} AS {renderer.name(name)}" for own, name in zip(rows.outputs, names, strict=True))
        return f"SELECT {items} FROM ({renderer.query(rows)}) AS r"


def _as_text(relation: str, _: Moment) -> str:
    return relation


def _sum(item: Item) -> str:
    return f"sum_{item.name}"


def _count(item: Item) -> str:
    return f"count_{item.name}"


def _argument(item: Item) -> exp.Expr:
    if item.argument is None:
        raise TypeError(f"{item.name} has no argument")
    return item.argument.copy()


def _sum_type(types: ItemTypes) -> str:
    found = sum_type(types.argument)
    if found is None:
        raise TypeError(f"sums of {types.argument} are not exact")
    return found


def _value(item: Item, types: Mapping[str, ItemTypes]) -> exp.Expr:
    if item.argument is None:
        return column(ROW_COUNT)
    count = column(_count(item))
    if item.form is Form.COUNT:
        return count
    of_item = types[item.name]
    value = column(_sum(item))
    if item.form is Form.AVG:
        divided = averaged_sum_type(of_item.argument) or ""
        by = "DOUBLE" if divided == "DOUBLE" else "DECIMAL(20,0)"
        value = exp.Div(this=exp.cast(value, divided), expression=exp.cast(count.copy(), by))
        value = exp.paren(value, copy=False)
    is_known = exp.GT(this=count, expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=is_known, true=exp.cast(value, of_item.value))])


def _zero_if_null(value: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])


def _bigint(value: exp.Expr) -> exp.Expr:
    return exp.cast(value, "BIGINT")


def _not_zero(name: str) -> exp.Expr:
    return exp.NEQ(this=column(name), expression=exp.Literal.number(0))
