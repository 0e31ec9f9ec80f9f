"""Filters given as Polars expressions: ``pl.col("price") > 5`` becomes the same predicate as ``col("price") > 5``.

The expression is read from its JSON form. An expression may depend on several rows
(``pl.col("a") > pl.col("a").mean()``), so only forms known to be conditions on one row are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.comparisons import (
    MIRRORED,
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
from storage_lib.schema.filter.predicate import Predicate

_COMPARISONS: dict[str, Callable[[str, object], Predicate]] = {
    "Eq": Equal,
    "NotEq": NotEqual,
    "Lt": LessThan,
    "LtEq": LessOrEqual,
    "Gt": GreaterThan,
    "GtEq": GreaterOrEqual,
}
_LOGICAL: dict[str, Callable[[Predicate, Predicate], Predicate]] = {
    "And": lambda left, right: left & right,
    "LogicalAnd": lambda left, right: left & right,
    "Or": lambda left, right: left | right,
    "LogicalOr": lambda left, right: left | right,
}
_Node = Mapping[str, Any]


def polars_predicate(expression: pl.Expr) -> Predicate:
    """Convert ``expression`` to a predicate.

    Supports comparisons of a column with a literal, ``is_in``, ``is_between``, ``is_null``, ``is_not_null``,
    ``str.starts_with``, a boolean column, ``&``, ``|`` and ``~``. Raises ``InvalidInputError`` for anything else.
    """
    return _Reader(expression).predicate(json.loads(expression.meta.serialize(format="json")))


class _Reader:
    """Converts the tree of one expression to predicates."""

    def __init__(self, expression: pl.Expr) -> None:
        self._text = str(expression)
        # In JSON, NaN and the infinities are null, so values are taken from the expression, from left to right.
        self._literals = _literals_of(expression)

    def predicate(self, node: _Node) -> Predicate:
        match node:
            case {"Column": str(name)}:
                return Equal(name, True)
            case {"BinaryExpr": {"left": left, "op": str(operator), "right": right}}:
                return self._binary(left, operator, right)
            case {"Function": {"input": list(inputs), "function": function}}:
                return self._function(inputs, function)
        raise self._refused

    def _binary(self, left: _Node, operator: str, right: _Node) -> Predicate:
        if operator in _LOGICAL:
            return _LOGICAL[operator](self.predicate(left), self.predicate(right))
        if operator not in _COMPARISONS:
            raise self._refused
        compared = _COMPARISONS[operator]
        if "Column" not in left and "Column" in right:
            left, compared, right = right, MIRRORED[compared], left
        return compared(self._name(left), self._value(right))

    def _function(self, inputs: list[_Node], function: object) -> Predicate:
        match function, inputs:
            case {"Boolean": "Not"}, [one]:
                return ~self.predicate(one)
            case {"Boolean": "IsNull"}, [column]:
                return IsNull(self._name(column))
            case {"Boolean": "IsNotNull"}, [column]:
                return IsNotNull(self._name(column))
            case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [column, values]:
                return In(self._name(column), tuple(self._values(values)))
            case {"Boolean": {"IsBetween": {"closed": "Both"}}}, [column, low, high]:
                return col(self._name(column)).between(self._value(low), self._value(high))
            case {"StringExpr": "StartsWith"}, [column, prefix]:
                return StartsWith(self._name(column), self._value(prefix))
        raise self._refused

    def _name(self, node: _Node) -> str:
        match node:
            case {"Column": str(name)}:
                return name
        raise self._refused

    def _values(self, node: _Node) -> list[Any]:
        values = self._literal(node)
        listed = values.to_list() if isinstance(values, pl.Series) else [values]
        if any(each is None for each in listed):
            raise self._refused
        return listed

    def _value(self, node: _Node) -> Any:
        value = self._literal(node)
        if value is None or isinstance(value, pl.Series):
            raise self._refused
        return value

    def _literal(self, node: _Node) -> Any:
        if set(node) != {"Literal"}:
            raise self._refused
        return pl.select(next(self._literals)).item()

    @property
    def _refused(self) -> InvalidInputError:
        message = (
            f"invalid filter {self._text}: of Polars' expressions a filter takes comparisons of a column with a "
            "literal that is not null, is_in, is_between, is_null, is_not_null, str.starts_with, &, | and ~; apply "
            "others to what to_polars() returns"
        )
        return InvalidInputError(message)


def _literals_of(expression: pl.Expr) -> Iterator[pl.Expr]:
    """Yield the literals of an expression from left to right, the order in which its JSON has them."""
    if expression.meta.is_literal():
        yield expression
        return
    for part in reversed(expression.meta.pop()):
        yield from _literals_of(part)
