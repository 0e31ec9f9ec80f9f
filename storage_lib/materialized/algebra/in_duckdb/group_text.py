"""Aggregates and window functions, in DuckDB's words, with the types and values that they have in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError
from storage_lib.materialized.algebra.in_duckdb.quotients import quotient
from storage_lib.materialized.algebra.in_duckdb.scalar_text import ScalarText, Value, check_arguments, converted
from storage_lib.materialized.algebra.in_duckdb.value_type import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    Kind,
    ValueType,
    decimal,
    total_type,
)

__all__ = ["GroupText"]

_AVERAGED_DIGITS = 4
"""Digits that AVG of a decimal has more than its argument, before the point and after it together, and after it."""

_EXACT_DIGITS = 15
"""Digits of integers that floating-point numbers hold exactly."""

_RANKS: Mapping[type[exp.Expr], str] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_NEIGHBOURS: Mapping[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead"}

_ARGUMENTS = frozenset({"this", "expression", "big_int"})
_WINDOW_ARGUMENTS = frozenset({"this", "partition_by", "order", "spec", "over"})
_ORDER_ARGUMENTS = frozenset({"this", "desc", "nulls_first"})
_NEIGHBOUR_ARGUMENTS = frozenset({"this", "offset"})


class GroupText:
    """Translates aggregates and window functions, by the translation of their arguments."""

    def __init__(self, types: Mapping[str, ValueType]) -> None:
        self._scalars = ScalarText(types)
        self._over_groups = _OverGroups(types, self.aggregate)

    def value(self, expression: exp.Expr) -> Value:
        """Return an expression over aggregates for DuckDB. Raises ``NotExactError``."""
        return self._over_groups.value(expression)

    def aggregate(self, expression: exp.Expr) -> Value:
        """Return an aggregate for DuckDB. Raises ``NotExactError``."""
        condition, function = "", expression
        check_arguments(expression, _ARGUMENTS)
        if isinstance(expression, exp.Filter):
            test = self._scalars.condition(expression.expression.this)
            condition, function = f" FILTER (WHERE {test.text})", expression.this
        return self._aggregate(function, condition)

    def window(self, window: exp.Expr) -> Value:
        """Return a window function for DuckDB. Raises ``NotExactError``."""
        if not isinstance(window, exp.Window) or window.args.get("over") != "OVER":
            raise NotExactError(window.sql("spark"))
        check_arguments(window, _WINDOW_ARGUMENTS)
        keys = ", ".join(self._scalars.value(each).text for each in window.args.get("partition_by") or ())
        order = window.args.get("order")
        sorted_by = "" if order is None else f" ORDER BY {self.order(order.expressions)}"
        over = f" OVER (PARTITION BY {keys}{sorted_by}{_frame(window)})"
        function = window.this
        if type(function) in _RANKS:
            if window.args.get("spec") is not None or any(function.args.values()):
                raise NotExactError(window.sql("spark"))
            return Value(f"CAST({_RANKS[type(function)]}(){over} AS INTEGER)", INT)
        if type(function) in _NEIGHBOURS:
            return self._neighbour(function, over)
        return self._aggregate(function, over)

    def order(self, items: list[exp.Expr]) -> str:
        """Return the items of ORDER BY, with the places of NULL. Raises ``NotExactError``."""
        texts = []
        for each in items:
            ordered = each if isinstance(each, exp.Ordered) else exp.Ordered(this=each.copy(), nulls_first=True)
            check_arguments(ordered, _ORDER_ARGUMENTS)
            value = self._scalars.value(ordered.this)
            places = "FIRST" if ordered.args.get("nulls_first") else "LAST"
            texts.append(f"{value.text} {'DESC' if ordered.args.get('desc') else 'ASC'} NULLS {places}")
        return ", ".join(texts)

    def _aggregate(self, function: exp.Expr, suffix: str) -> Value:
        check_arguments(function, _ARGUMENTS)
        argument, distinct = function.this, ""
        if isinstance(argument, exp.Distinct):
            if len(argument.expressions) != 1 or argument.args.get("on"):
                raise NotExactError(function.sql("spark"))
            argument, distinct = argument.expressions[0], "DISTINCT "
        match function:
            case exp.Count() | exp.CountIf():
                return Value(f"count({self._counted(function, argument, distinct)}){suffix}", BIGINT)
            case exp.Sum():
                value = self._scalars.value(argument)
                return converted(Value(f"sum({distinct}{value.text}){suffix}", _SUMMED), total_type(value.type))
            case exp.Min() | exp.Max():
                # Also of a DOUBLE: NaN is the largest in both engines, and 0.0 and -0.0 are equal.
                value = self._scalars.value(argument)
                if value.type.kind is Kind.NOTHING:
                    raise NotExactError(function.sql("spark"))
                return Value(f"{function.key}({value.text}){suffix}", value.type)
            case exp.Avg() if not distinct:
                return _average(self._scalars.value(argument), suffix)
            case exp.LogicalAnd() | exp.LogicalOr() if not distinct:
                name = "bool_and" if isinstance(function, exp.LogicalAnd) else "bool_or"
                return Value(f"{name}({self._scalars.condition(argument).text}){suffix}", BOOLEAN)
            case _:
                raise NotExactError(function.sql("spark"))

    def _counted(self, function: exp.Expr, argument: exp.Expr, distinct: str) -> str:
        if isinstance(function, exp.CountIf):
            return f"{distinct}CASE WHEN {self._scalars.condition(argument).text} THEN true END"
        return "*" if isinstance(argument, exp.Star) else f"{distinct}{self._scalars.value(argument).text}"

    def _neighbour(self, function: exp.Expr, over: str) -> Value:
        offset = function.args.get("offset")
        is_plain = offset is None or (isinstance(offset, exp.Literal) and offset.name.isdigit())
        check_arguments(function, _NEIGHBOUR_ARGUMENTS)
        if not is_plain:
            raise NotExactError(function.sql("spark"))
        value = self._scalars.value(function.this)
        return Value(f"{_NEIGHBOURS[type(function)]}({value.text}, {offset.name if offset else 1}){over}", value.type)


class _OverGroups(ScalarText):
    """Translates expressions over aggregates, which are translated by ``aggregate``."""

    def __init__(self, types: Mapping[str, ValueType], aggregate: Callable[[exp.Expr], Value]) -> None:
        super().__init__(types)
        self._aggregate = aggregate

    def value(self, expression: exp.Expr) -> Value:
        """Return an expression for DuckDB. Raises ``NotExactError``."""
        if isinstance(expression, exp.AggFunc | exp.Filter):
            return self._aggregate(expression)
        return super().value(expression)


_SUMMED = ValueType(Kind.NOTHING)
"""DuckDB's type of a sum, which is longer than Spark's."""


def _average(value: Value, suffix: str) -> Value:
    total, count = f"sum({value.text}){suffix}", f"count({value.text}){suffix}"
    if value.type.is_whole:
        # Spark adds floating-point numbers: with fewer digits, each sum on the way is exact.
        size = f"CAST(sum(abs(CAST({value.text} AS HUGEINT))){suffix} AS DECIMAL({_EXACT_DIGITS},0))"
        return Value(f"(CASE WHEN {count} > 0 AND {size} >= 0 THEN CAST({total} AS DOUBLE) / {count} END)", DOUBLE)
    if value.type.kind is not Kind.DECIMAL:
        raise NotExactError(f"AVG of {value.type.spark}")
    kind = decimal(value.type.digits + _AVERAGED_DIGITS, value.type.scale + _AVERAGED_DIGITS)
    rounded = quotient(f"CAST({total} AS DECIMAL(38,{value.type.scale}))", value.type.scale, count, 0, kind)
    return Value(f"(CASE WHEN {count} > 0 THEN {rounded} END)", kind)


def _frame(window: exp.Window) -> str:
    spec = window.args.get("spec")
    if spec is None:
        return ""
    if str(spec.args.get("kind")).upper() != "ROWS" or spec.args.get("exclude"):
        raise NotExactError(window.sql("spark"))
    return f" {spec.sql('duckdb')}"
