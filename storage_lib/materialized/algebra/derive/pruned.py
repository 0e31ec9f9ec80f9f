"""Trees that read only the columns that they use."""

from __future__ import annotations

from sqlglot import exp

from storage_lib.materialized.algebra.tree.expressions import column, columns_in, columns_in_all
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
    Union,
    Window,
    with_inputs,
)

__all__ = ["pruned"]


def pruned(relation: Relation, needed: frozenset[str]) -> Relation:  # noqa: C901  one case per operator
    """Return ``relation`` without columns that neither it nor a reader of the columns ``needed`` uses."""
    match relation:
        case Scan():
            needed_columns = tuple(each for each in relation.columns if each[1] in needed)
            return Scan(relation.table, needed_columns, relation.moment, relation.weight)
        case Project():
            items = tuple(each for each in relation.items if each[0] in needed)
            return Project(pruned(relation.input, columns_in_all(value for _, value in items)), items)
        case Filter():
            return Filter(pruned(relation.input, needed | columns_in(relation.condition)), relation.condition)
        case InnerJoin():
            read = needed | columns_in_all(relation.conditions)
            return InnerJoin(tuple(pruned(each, read) for each in relation.inputs), relation.conditions)
        case SemiJoin() | OuterJoin():
            read = needed | columns_in(relation.condition)
            return with_inputs(relation, (pruned(relation.left, read), pruned(relation.right, read)))
        case Aggregate():
            items = tuple(each for each in relation.items if each[0] in needed)
            read = frozenset(relation.keys) | columns_in_all(value for _, value in items)
            return Aggregate(pruned(relation.input, read), relation.keys, items, relation.is_distinct)
        case Window():
            return _window(relation, needed)
        case TopRows():
            # The order reads all columns.
            return TopRows(pruned(relation.input, frozenset(relation.outputs)), relation.order, relation.count)
        case Union():
            kept_at = [number for number, name in enumerate(relation.outputs) if name in needed]
            inputs = []
            for each in relation.inputs:
                items = tuple((each.outputs[number], column(each.outputs[number])) for number in kept_at)
                inputs.append(pruned(Project(each, items), frozenset(name for name, _ in items)))
            return Union(tuple(inputs), tuple(relation.outputs[number] for number in kept_at))
        case _:
            return relation


def _window(window: Window, needed: frozenset[str]) -> Relation:
    items = tuple(each for each in window.items if each[0] in needed)
    if not items:
        return pruned(window.input, needed)
    read = needed.difference(name for name, _ in items) | set(window.keys)
    inner = pruned(window.input, read | columns_in_all(value for _, value in items))
    ordered = tuple((name, _ordered(value, inner.outputs)) for name, value in items)
    return Window(inner, window.keys, ordered)


_BY_POSITION = (exp.RowNumber, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.First)


def _ordered(window: exp.Expr, columns: tuple[str, ...]) -> exp.Expr:
    """Return a window in whose order only equal rows tie, if its function depends on the order of ties.

    Without it, two computations over the same rows could number them differently.
    """
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    spec = window.args.get("spec")
    by_rows = spec is not None and str(spec.args.get("kind") or "").upper() == "ROWS"
    if not isinstance(function, _BY_POSITION) and not by_rows:
        return window
    window = window.copy()
    order = window.args.get("order")
    given = list(order.expressions) if order is not None else []
    known = {each.this.name for each in given if isinstance(each.this, exp.Column)}
    more = [exp.Ordered(this=column(name), nulls_first=True) for name in columns if name not in known]
    window.set("order", exp.Order(expressions=[*given, *more]))
    return window
