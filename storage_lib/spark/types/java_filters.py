"""Convert filters of Spark's data sources, as ``QueryNeeds.java`` describes them, to predicates that prune files.

Parts without an exact equivalent are dropped: rows still have to be filtered by Spark.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.predicate import Or, Predicate, both
from storage_lib.spark.types.spark_filters import predicate_of
from storage_lib.spark.versions import filter_classes as spark

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

Given: TypeAlias = Mapping[str, Any]
"""A filter: its ``kind``, the name of Spark's class, and its parts by their names there."""

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


_REPLACEMENT = "\ufffd"


class _NotPython(Exception):  # noqa: N818  internal: no error of the user's
    """A value of the JVM has no exact Python equivalent here."""


def pruning_predicate(conditions: Sequence[Given], schema: TableSchema) -> Predicate | None:
    """Return a predicate that holds wherever all conditions hold; None if nothing of them can be expressed."""
    predicate: Predicate | None = None
    for each in conditions:
        predicate = both(predicate, _valid(_converted(each, schema), schema))
    return predicate


def either(left: Predicate | None, right: Predicate | None) -> Predicate | None:
    """Return the disjunction; None stands for a condition that is not known."""
    return None if left is None or right is None else Or(left, right)


def _valid(predicate: Predicate | None, schema: TableSchema) -> Predicate | None:
    try:
        return None if predicate is None else predicate.validated(schema)
    except InvalidInputError:  # Spark compares values that the column's type can't hold; ours don't prune by them
        return None


def _converted(given: Given, schema: TableSchema) -> Predicate | None:
    kind = given["kind"]
    if kind == "And":
        return both(_converted(given["left"], schema), _converted(given["right"], schema))
    if kind == "Or":
        return either(_converted(given["left"], schema), _converted(given["right"], schema))
    try:
        simple = _simple(given)
    except _NotPython:
        return None
    return None if simple is None else predicate_of(simple, schema)


def _simple(given: Given) -> spark.Filter | None:
    kind = given["kind"]
    if kind == "Not":
        child = _simple(given["child"])
        return None if child is None else spark.Not(child)
    if kind in ("IsNull", "IsNotNull"):
        of = spark.IsNull if kind == "IsNull" else spark.IsNotNull
        return of((given["attribute"],))
    if kind == "In":
        return spark.In((given["attribute"],), tuple(_value(each) for each in given["values"]))
    if kind in _WITH_VALUE:
        return _WITH_VALUE[kind]((given["attribute"],), _value(given["value"]))
    return None


def _value(given: Any) -> object:
    match given:
        case str() if _REPLACEMENT in given:
            # The JVM replaces bytes that are not UTF-8 by this character, which has another place in the order.
            raise _NotPython
        case None | bool() | int() | str():
            return given
        case {"decimal": text}:
            return Decimal(text)
        case {"bytes": text}:
            return b64decode(text)
        case {"date": text, "millis": millis} if millis < _GREGORIAN_SINCE_MILLIS:
            # java.sql.Date counts older days by the Julian calendar, and prints no era.
            raise _NotPython
        case {"date": text}:
            return _parsed(date.fromisoformat, text)
        case {"moment": text}:
            return _parsed(datetime.fromisoformat, text)
        case _:
            raise _NotPython


def _parsed(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except ValueError as error:  # years outside 1 to 9999, nanoseconds
        raise _NotPython from error
