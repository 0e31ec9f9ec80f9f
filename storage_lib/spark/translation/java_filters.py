"""Convert conditions of Spark's logical plans to predicates that prune files.

Parts without an exact equivalent are dropped: rows still have to be filtered by Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource as spark

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.predicate import Or, Predicate, both
from storage_lib.spark.translation.spark_filters import predicate_of

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

_WITH_VALUE: dict[str, Callable[[tuple[str, ...], Any], spark.Filter]] = {
    "EqualTo": spark.EqualTo,
    "EqualNullSafe": spark.EqualNullSafe,
    "GreaterThan": spark.GreaterThan,
    "GreaterThanOrEqual": spark.GreaterThanOrEqual,
    "LessThan": spark.LessThan,
    "LessThanOrEqual": spark.LessThanOrEqual,
    "StringStartsWith": spark.StringStartsWith,
}


_GREGORIAN_SINCE_MILLIS = -12_212_467_200_000
"""1583-01-02, in milliseconds since 1970: after the change of calendars in any time zone."""


class _NotPython(Exception):  # noqa: N818  internal: no error of the user's
    """A value of the JVM has no exact Python equivalent here."""


def pruning_predicate(jvm: Any, condition: Any, schema: TableSchema) -> Predicate | None:
    """Return a predicate that holds wherever the condition, a Catalyst expression on table columns, holds.

    None if nothing of the condition can be expressed.
    """
    strategy = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$")
    found = getattr(strategy, "MODULE$").translateFilter(condition, False)
    if not found.isDefined():
        # Spark translates a conjunction as a whole or not at all.
        if condition.getClass().getSimpleName() != "And":
            return None
        left = pruning_predicate(jvm, condition.left(), schema)
        right = pruning_predicate(jvm, condition.right(), schema)
        return both(left, right)
    return _valid(_converted(found.get(), schema), schema)


def either(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """Return the disjunction; None stands for a condition that is not known."""
    return None if left is None or right is None else Or(left, right)


def _valid(predicate: Predicate | None, schema: TableSchema) -> Predicate | None:
    try:
        return None if predicate is None else predicate.validated(schema)
    except InvalidInputError:  # Spark compares values that the column's type can't hold; ours don't prune by them
        return None


def _converted(given: Any, schema: TableSchema) -> Predicate | None:
    kind = str(given.getClass().getSimpleName())
    if kind == "And":
        return both(_converted(given.left(), schema), _converted(given.right(), schema))
    if kind == "Or":
        return either(_converted(given.left(), schema), _converted(given.right(), schema))
    try:
        simple = _simple(given, kind)
    except _NotPython:
        return None
    return None if simple is None else predicate_of(simple, schema)


def _simple(given: Any, kind: str) -> spark.Filter | None:
    if kind == "Not":
        child = _simple(given.child(), str(given.child().getClass().getSimpleName()))
        return None if child is None else spark.Not(child)
    if kind in ("IsNull", "IsNotNull"):
        of = spark.IsNull if kind == "IsNull" else spark.IsNotNull
        return of((str(given.attribute()),))
    if kind == "In":
        return spark.In((str(given.attribute()),), tuple(_value(each) for each in given.values()))
    if kind in _WITH_VALUE:
        return _WITH_VALUE[kind]((str(given.attribute()),), _value(given.value()))
    return None


def _value(given: Any) -> object:
    if given is None or isinstance(given, bool | int | str | Decimal | bytes):
        return given
    name = str(given.getClass().getName()) if hasattr(given, "getClass") else ""
    if name == "java.sql.Date" and int(given.getTime()) < _GREGORIAN_SINCE_MILLIS:
        # This class counts older days by the Julian calendar, and prints no era.
        raise _NotPython
    if name in ("java.sql.Date", "java.time.LocalDate"):
        return _parsed(date.fromisoformat, str(given.toString()))
    if name == "java.time.LocalDateTime":
        return _parsed(datetime.fromisoformat, str(given.toString()))
    raise _NotPython


def _parsed(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except ValueError as error:  # years outside 1 to 9999, nanoseconds
        raise _NotPython from error
