"""ORDER BY with LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.scope import in_tree, type_of
from storage_lib.materialized.algebra.tree.expressions import column, columns_in, replaced_outside_queries
from storage_lib.materialized.algebra.tree.relational_operators import Filter, Relation, TopRows

__all__ = ["COUNT_MAX", "top_rows"]

_ORDERED = frozenset(
    {
        *exp.DataType.INTEGER_TYPES,
        *exp.DataType.REAL_TYPES,
        *exp.DataType.TEXT_TYPES,
        exp.DataType.Type.ARRAY,
        exp.DataType.Type.BINARY,
        exp.DataType.Type.BOOLEAN,
        exp.DataType.Type.DATE,
        exp.DataType.Type.STRUCT,
        exp.DataType.Type.TIMESTAMP,
        exp.DataType.Type.TIMESTAMPLTZ,
        exp.DataType.Type.TIMESTAMPNTZ,
        exp.DataType.Type.TIMESTAMPTZ,
        exp.DataType.Type.VARBINARY,
    }
)
COUNT_MAX = 10_000
"""Most rows of a LIMIT that are kept by changes: a refresh reads and sorts all of them."""


def top_rows(query: exp.Expr, relation: Relation, labels: Sequence[str]) -> Relation:
    """Return the rows that LIMIT of ``query`` keeps of its other rows; ``labels`` name the columns of ``relation``.

    Rows that tie in ORDER BY are put in the order of all columns, so that any two computations keep the same ones.
    """
    if query.args.get("offset"):
        raise NotIncrementalError("OFFSET skips rows that the answer does not hold")
    count = _count(query.args["limit"])
    if count == 0:
        return Filter(relation, exp.false())
    order = _Order(query, relation, labels)
    return TopRows(relation, order.keys(), count)


def _count(limit: exp.Expr) -> int:
    value = limit.expression.unnest() if isinstance(limit, exp.Limit) and not limit.expressions else None
    if not isinstance(value, exp.Literal) or value.is_string or not value.this.isdecimal():
        raise NotIncrementalError("LIMIT with anything other than a whole number has no rule")
    count = int(value.this)
    if count > COUNT_MAX:
        raise NotIncrementalError(f"LIMIT keeps more than {COUNT_MAX} rows")
    return count


class _Order:
    def __init__(self, query: exp.Expr, relation: Relation, labels: Sequence[str]) -> None:
        selects = _selects(query)
        first = selects[0]
        self._given = query.args.get("order")
        self._labels = [each.lower() for each in labels]
        self._names = relation.outputs
        selected = [each.unalias() for each in first.expressions]
        kinds = [[type_of(each.unalias()) for each in select.expressions] for select in selects]
        self._kinds = [_known(each) for each in zip(*kinds, strict=True)]
        # Only the columns of a SELECT itself are in sight of its ORDER BY under the names of its tables.
        self._values: Mapping[str, exp.Expr] = (
            dict(zip(relation.outputs, selected, strict=True)) if first is query else {}
        )

    def keys(self) -> tuple[exp.Expr, ...]:
        """Return the given order, then that of all columns."""
        given = [self._key(each) for each in (self._given.expressions if self._given is not None else ())]
        known = {each.this.name for each in given if isinstance(each.this, exp.Column)}
        for label, kind in zip(self._labels, self._kinds, strict=True):
            _check_order(label, kind)
        more = [exp.Ordered(this=column(name), nulls_first=True) for name in self._names if name not in known]
        return (*given, *more)

    def _key(self, ordered: exp.Expr) -> exp.Expr:
        if isinstance(ordered.this.unnest(), exp.Literal):
            # In parentheses, a number is a position to Spark, and would be a constant in a window.
            raise NotIncrementalError(f"ORDER BY {ordered.this.sql('spark')} has no rule; name the column")
        value = replaced_outside_queries(ordered.this, self._column)
        if not columns_in(value):
            raise NotIncrementalError(f"ORDER BY {ordered.this.sql('spark')} reads no column of the answer")
        if any(value.find_all(exp.AggFunc, exp.Window, exp.Query)) or not columns_in(value) <= set(self._names):
            raise NotIncrementalError(
                f"the answer does not hold {ordered.this.sql('spark')}, by which ORDER BY orders it; select it as well"
            )
        return exp.Ordered(
            this=value, desc=bool(ordered.args.get("desc")), nulls_first=bool(ordered.args.get("nulls_first"))
        )

    def _column(self, node: exp.Expr) -> exp.Expr | None:
        for name, value in self._values.items():
            if node == value:
                return in_tree(name, type_of(value))
        if isinstance(node, exp.Column) and not node.table and self._labels.count(node.name.lower()) == 1:
            number = self._labels.index(node.name.lower())
            return in_tree(self._names[number], self._kinds[number])
        return None


def _check_order(label: str, kind: exp.DataType | None) -> None:
    if kind is None or kind.is_type(exp.DataType.Type.UNKNOWN):
        raise NotIncrementalError(f"the type of column {label} is not known, by which LIMIT orders ties; CAST it")
    if not all(each.this in _ORDERED for each in kind.find_all(exp.DataType)):
        raise NotIncrementalError(f"column {label} has a type without an order, by which LIMIT orders ties")


def _selects(query: exp.Expr) -> list[exp.Expr]:
    """Return the SELECTs whose rows a set operation combines."""
    if isinstance(query, exp.SetOperation):
        return [*_selects(query.this), *_selects(query.expression)]
    return _selects(query.this) if isinstance(query, exp.Subquery) else [query]


def _known(kinds: Sequence[exp.DataType | None]) -> exp.DataType | None:
    """Return the type of a column of several SELECTs that says most: one without an order, or not NULL."""
    given = [each for each in kinds if each is None or not each.is_type(exp.DataType.Type.NULL)]
    unordered = [each for each in given if each is None or each.this not in _ORDERED]
    return next(iter([*unordered, *given]), None)
