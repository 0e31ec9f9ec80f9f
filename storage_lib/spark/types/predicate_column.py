"""Convert a predicate to a Spark column. Spark pushes it down to the reader if possible and evaluates the rest."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sql

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter import comparisons as ours
from storage_lib.schema.filter.predicate import And, Not, Or, Predicate

if TYPE_CHECKING:
    from pyspark.sql import Column

    from storage_lib.schema.table_schema import TableSchema

_COMPARISONS: dict[type[Predicate], Callable[[Any, Any], Any]] = {
    ours.Equal: operator.eq,
    ours.NotEqual: operator.ne,
    ours.LessThan: operator.lt,
    ours.LessOrEqual: operator.le,
    ours.GreaterThan: operator.gt,
    ours.GreaterOrEqual: operator.ge,
}


def column_of(predicate: Predicate, schema: TableSchema) -> Column:
    """Return the equivalent Spark condition; predicates compare NaN and -0.0 as Spark does.

    Raises ``InvalidInputError`` if a column or a value does not fit the table.
    """
    return _column(predicate.validated(schema))


def quoted(name: str) -> Column:
    """Return the column with this name, quoted for any special characters."""
    return sql.col("`" + name.replace("`", "``") + "`")


def _column(predicate: Predicate) -> Column:
    match predicate:
        case And(left, right):
            return _column(left) & _column(right)
        case Or(left, right):
            return _column(left) | _column(right)
        case Not(child):
            return ~_column(child)
        case _:
            return _condition(predicate)


def _condition(predicate: Predicate) -> Column:
    """Convert a predicate on one column."""
    comparison = _COMPARISONS.get(type(predicate))
    if comparison is not None:
        name, value = predicate.column, predicate.value  # type: ignore[attr-defined]
        return comparison(quoted(name), sql.lit(value))
    match predicate:
        case ours.IsNull(name):
            return quoted(name).isNull()
        case ours.IsNotNull(name):
            return quoted(name).isNotNull()
        case ours.In(name, values):
            return quoted(name).isin(list(values))
        case ours.StartsWith(name, prefix):
            return quoted(name).startswith(prefix)
        case _:
            message = f"{predicate!r} has no counterpart in Spark; filter the data frame instead"
            raise InvalidInputError(message)
