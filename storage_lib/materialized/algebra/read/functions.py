"""What is known about functions: which depend on more than their arguments, and which are exact."""

from __future__ import annotations

import re

from sqlglot import exp

from storage_lib.materialized.algebra.read.not_incremental import NotIncrementalError
from storage_lib.materialized.algebra.read.scope import type_of
from storage_lib.materialized.algebra.read.spark_functions import ORDER_DEPENDENT, SCALAR, VOLATILE
from storage_lib.materialized.algebra.read.table_names import WINDOW_CALL

__all__ = ["check_aggregate", "first_generator", "first_sized_literal", "first_unknown", "first_volatile", "is_exact"]

_VOLATILE_NODES: tuple[type[exp.Expr], ...] = tuple(
    node
    for name in (
        "CurrentCatalog",
        "CurrentDate",
        "CurrentDatetime",
        "CurrentDatabase",
        "CurrentRole",
        "CurrentSchema",
        "CurrentTime",
        "CurrentTimestamp",
        "CurrentTimestampLTZ",
        "CurrentTimezone",
        "CurrentUser",
        "CurrentVersion",
        "Localtime",
        "Localtimestamp",
        "MonotonicallyIncreasingId",
        "Rand",
        "Randn",
        "Randstr",
        "SessionUser",
        "Shuffle",
        "Uniform",
        "UnixTimestamp",
        "Uuid",
    )
    if (node := getattr(exp, name, None)) is not None
)
_SPECIAL_DAY = re.compile(r"\s*(now|today|tomorrow|yesterday)(\s+\S+)?\s*")
"""Texts for which Spark's dates and timestamps depend on the clock; a time zone may follow."""

_WINDOW_NAMES = frozenset(["window", WINDOW_CALL])
_EXACT = (
    exp.Count,
    exp.CountIf,
    exp.Max,
    exp.Min,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.BitwiseAndAgg,
    exp.BitwiseOrAgg,
    exp.BitwiseXorAgg,
    exp.ApproxDistinct,
    exp.Quantile,
)
_SUMS = (
    exp.Avg,
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.Sum,
    exp.Variance,
    exp.VariancePop,
)
_EXACT_TYPES = frozenset(
    [
        exp.DataType.Type.TINYINT,
        exp.DataType.Type.SMALLINT,
        exp.DataType.Type.INT,
        exp.DataType.Type.BIGINT,
        exp.DataType.Type.DECIMAL,
    ]
)
_SURE = frozenset(
    [
        *(_EXACT_TYPES - {exp.DataType.Type.DECIMAL}),
        exp.DataType.Type.DOUBLE,
        exp.DataType.Type.FLOAT,
        exp.DataType.Type.DATE,
        exp.DataType.Type.INTERVAL,
    ]
)
_SMALL = _EXACT_TYPES - {exp.DataType.Type.BIGINT}


def first_volatile(tree: exp.Expr) -> str | None:
    """Return the first function whose value may differ between two runs over the same rows."""
    for node in tree.walk():
        if isinstance(node, _VOLATILE_NODES):
            return node.sql("spark")
        if isinstance(node, exp.Anonymous) and node.name.lower() in VOLATILE:
            return f"{node.name}()"
        if isinstance(node, exp.Column) and not node.table and node.name.lower() in VOLATILE:
            return node.name
        if isinstance(node, exp.Literal) and node.is_string and _SPECIAL_DAY.fullmatch(node.name.lower()):
            # As a date or a timestamp, to which Spark may also convert it for a comparison, it is another one each day.
            return node.sql("spark")
    return None


def first_unknown(tree: exp.Expr) -> str | None:
    """Return the first function of which nothing is known, for example one that a user registered."""
    for comparison in tree.find_all(exp.Any, exp.All):
        if not comparison.find(exp.Query):
            return f"{comparison.key}()"
    for node in tree.find_all(exp.Anonymous, exp.AnonymousAggFunc):
        if node.name.lower() not in SCALAR:
            return f"{node.name}()"
    return None


def first_generator(tree: exp.Expr) -> str | None:
    """Return the first function that makes several rows of one."""
    for node in tree.find_all(exp.UDTF, exp.Anonymous):
        if isinstance(node, exp.Anonymous):
            if node.name.lower() in _WINDOW_NAMES and not _is_tumbling(node):
                return "window() with a slide, in which a row lies in several windows"
        elif not isinstance(node, exp.Subquery | exp.Values):
            return node.sql("spark")
    return None


def _is_tumbling(window: exp.Anonymous) -> bool:
    """Return whether each moment lies in one window: none begins before the last one has ended."""
    _, *sizes = window.expressions
    return len(sizes) <= 1 or (isinstance(sizes[0], exp.Literal) and sizes[0] == sizes[1])


def first_sized_literal(tree: exp.Expr) -> str | None:
    """Return the first integer with a suffix (``3L``) that is computed with what may be a decimal.

    Spark takes it for a decimal of as many digits as it has, and the same integer, cast to BIGINT, for one of 20.
    sqlglot reads both as a cast.
    """
    for node in tree.find_all(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv):
        sides = [node.this.unnest(), node.expression.unnest()]
        for side, other in (sides, sides[::-1]):
            known = type_of(other)
            if _is_sized(side) and (known is None or known.this not in _SURE):
                return side.sql("spark")
    return None


def _is_sized(value: exp.Expr) -> bool:
    while isinstance(value, exp.Neg | exp.Paren):
        value = value.this
    if not isinstance(value, exp.Cast) or value.to.this not in _EXACT_TYPES - {exp.DataType.Type.DECIMAL}:
        return False
    inner = value.this.this if isinstance(value.this, exp.Neg) else value.this
    return isinstance(inner, exp.Literal) and not inner.is_string


def check_aggregate(aggregate: exp.Expr) -> None:
    """Raise ``NotIncrementalError`` for an aggregate without a rule."""
    function = _function(aggregate)
    if function.key in ORDER_DEPENDENT:
        raise NotIncrementalError(f"{function.sql('spark')} depends on the order of rows, which tables do not have")
    if not isinstance(function, (*_EXACT, *_SUMS)):
        raise NotIncrementalError(f"there is no rule for {function.sql('spark')}")


def is_exact(aggregate: exp.Expr) -> bool:
    """Return whether an aggregate is the same, to the last bit, in whatever order its rows are added.

    Sums of DOUBLE are not, nor are averages of BIGINT, which Spark computes from a sum of DOUBLE.
    """
    function = _function(aggregate)
    if not isinstance(function, _SUMS):
        return True
    argument = function.this.expressions[0] if isinstance(function.this, exp.Distinct) else function.this
    known = type_of(argument)
    kind = None if known is None else known.this
    return kind in (_EXACT_TYPES if isinstance(function, exp.Sum) else _SMALL) and isinstance(
        function, exp.Sum | exp.Avg
    )


def _function(aggregate: exp.Expr) -> exp.Expr:
    return aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
