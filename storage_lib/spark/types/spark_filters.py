"""Convert filters that Spark pushes down to predicates; Spark keeps the filters without an exact equivalent.

Floating point columns are left to Spark except for null checks. So are decimals of many digits: Spark rounds them to
the default precision of Python's decimals, 28 digits, when it passes them to Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

from storage_lib.schema.filter.comparisons import (
    Equal,
    GreaterOrEqual,
    GreaterThan,
    In,
    IsNotNull,
    IsNull,
    LessOrEqual,
    LessThan,
    NotEqual,
    StartsWith,
)
from storage_lib.schema.filter.predicate import And, Predicate
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.spark.versions import filter_classes as spark

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

_COMPARISONS: dict[type[spark.Filter], Callable[[str, object], Predicate]] = {
    spark.EqualTo: Equal,
    spark.GreaterThan: GreaterThan,
    spark.GreaterThanOrEqual: GreaterOrEqual,
    spark.LessThan: LessThan,
    spark.LessThanOrEqual: LessOrEqual,
}
_NEGATED: dict[type[spark.Filter], Callable[[str, object], Predicate]] = {
    spark.EqualTo: NotEqual,
    spark.GreaterThan: LessOrEqual,
    spark.GreaterThanOrEqual: LessThan,
    spark.LessThan: GreaterOrEqual,
    spark.LessThanOrEqual: GreaterThan,
}
_LEFT_TO_SPARK = (TypeRoot.FLOAT, TypeRoot.DOUBLE, TypeRoot.TIME)
_ROUNDED_DIGITS = 28


def split_filters(filters: Iterable[spark.Filter], schema: TableSchema) -> tuple[Predicate | None, list[spark.Filter]]:
    """Return the conjunction of the filters with an exact equivalent, and the filters that Spark must evaluate."""
    answered: list[Predicate] = []
    left: list[spark.Filter] = []
    for each in filters:
        predicate = predicate_of(each, schema)
        if predicate is None:
            left.append(each)
        else:
            answered.append(predicate)
    return (reduce(And, answered) if answered else None), left


def predicate_of(pushed: spark.Filter, schema: TableSchema) -> Predicate | None:
    """Return the exact equivalent as a predicate; None if the filter has none."""
    negated = isinstance(pushed, spark.Not)
    inner = pushed.child if isinstance(pushed, spark.Not) else pushed
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    types = {field.name: field.type.root for field in schema.fields}
    if len(path) != 1 or path[0] not in types:
        return None
    column = path[0]
    if isinstance(inner, spark.IsNull | spark.IsNotNull):
        return IsNull(column) if isinstance(inner, spark.IsNull) is not negated else IsNotNull(column)
    if types[column] in _LEFT_TO_SPARK or _may_be_rounded(getattr(inner, "value", None)):
        return None
    comparison = (_NEGATED if negated else _COMPARISONS).get(type(inner))
    if comparison is not None:
        value = getattr(inner, "value", None)
        return None if value is None else comparison(column, value)
    return None if negated else _special(inner, column)


def _may_be_rounded(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(_may_be_rounded(each) for each in value)
    return isinstance(value, Decimal) and len(value.as_tuple().digits) >= _ROUNDED_DIGITS


def _special(pushed: spark.Filter, column: str) -> Predicate | None:
    if isinstance(pushed, spark.In):
        # A null in the list makes the comparison unknown, never true.
        values = tuple(value for value in pushed.value if value is not None)
        return In(column, values) if values else None
    if isinstance(pushed, spark.EqualNullSafe):
        return IsNull(column) if pushed.value is None else Equal(column, pushed.value)
    if isinstance(pushed, spark.StringStartsWith):
        return StartsWith(column, pushed.value)
    return None
