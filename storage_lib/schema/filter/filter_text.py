"""Filters as SQL text: ``price > 5 AND item LIKE 'c%'``.

Text is parsed by sqlglot (the extra ``sql``) in Spark's dialect and converted to predicates, which can prune files.
Conditions that predicates can't express (arithmetic, functions, comparisons of two columns) are refused; run such a
filter in an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl
import pyarrow.compute as pc

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.arrow_filter import ArrowCondition
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.comparisons import (
    MIRRORED,
    Equal,
    GreaterOrEqual,
    GreaterThan,
    In,
    IsNull,
    LessOrEqual,
    LessThan,
    NotEqual,
    StartsWith,
)
from storage_lib.schema.filter.polars_filter import polars_predicate
from storage_lib.schema.filter.predicate import Predicate

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

__all__ = ["Filter", "as_predicate", "parse_filter"]

Filter: TypeAlias = Predicate | str | pc.Expression | pl.Expr
"""A condition on rows: text (``"price > 5"``), a predicate from ``col()``, or an expression of Arrow or Polars."""

_EXAMPLE = "for example: price > 5 AND item LIKE 'c%' AND day IN ('2026-01-01', '2026-01-02') AND note IS NOT NULL"
_WILDCARDS = ("%", "_")
# Keys are those of sqlglot's expressions, the lower-case names of their classes.
_COMPARISONS: dict[str, Callable[[str, object], Predicate]] = {
    "eq": Equal,
    "neq": NotEqual,
    "lt": LessThan,
    "lte": LessOrEqual,
    "gt": GreaterThan,
    "gte": GreaterOrEqual,
}
_KNOWN_ARGUMENTS = {"this", "expression", "expressions", "low", "high", "negate"}
"""Arguments of sqlglot's conditions that are understood; a condition with others is refused."""


def as_predicate(condition: object) -> Predicate | None:
    """Convert a ``Filter`` to a predicate; None stays None. Raises ``InvalidInputError`` for anything else."""
    if condition is None or isinstance(condition, Predicate):
        return condition
    if isinstance(condition, str):
        return parse_filter(condition)
    if isinstance(condition, pl.Expr):
        return polars_predicate(condition)
    if isinstance(condition, pc.Expression):
        return ArrowCondition(condition)
    message = (
        f"a filter is text, made of col(), or an expression of Polars or Arrow, not {type(condition).__module__}."
        f"{type(condition).__qualname__}: write filter=\"price > 5\" or filter=col('price') > 5"
    )
    raise InvalidInputError(message)


def parse_filter(text: str) -> Predicate:
    """Parse a filter.

    Supports comparisons of a column with a literal, IN, BETWEEN, LIKE 'prefix%', IS [NOT] NULL, a boolean column, AND,
    OR, NOT and parentheses. Raises ``InvalidInputError`` for anything else, and if sqlglot is not installed.
    """
    with importing_for("a filter as text (unlike one made with col())", InvalidInputError):
        import sqlglot  # noqa: PLC0415  an extra
        from sqlglot.errors import SqlglotError  # noqa: PLC0415  an extra

        from storage_lib.schema.filter.spark_text import SparkText  # noqa: PLC0415  it imports sqlglot
    try:
        tree: Any = sqlglot.parse_one(text, dialect=SparkText, into=sqlglot.exp.Condition)
    except SqlglotError as error:
        message = f"invalid filter {text!r}: {_problem(error)}; {_EXAMPLE}"
        raise InvalidInputError(message) from error
    return _Reader(text).predicate(tree)


def _problem(error: Exception) -> str:
    """Describe where sqlglot stopped parsing; its own messages name its internal classes."""
    for each in getattr(error, "errors", None) or ():
        if each.get("highlight"):
            return f"syntax error near {each['highlight']!r}, character {each['col']}"
    return str(error).partition("\n")[0].rstrip(".")


class _Reader:
    """Converts the syntax tree of one filter to predicates."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._readers: dict[str, Callable[[Expression], Predicate]] = {
            "paren": lambda tree: self.predicate(tree.this),
            "and": lambda tree: self.predicate(tree.this) & self.predicate(tree.expression),
            "or": lambda tree: self.predicate(tree.this) | self.predicate(tree.expression),
            "not": lambda tree: ~self.predicate(tree.this),
            "is": self._is_null,
            "in": self._in,
            "between": self._between,
            "like": self._like,
            "column": lambda tree: Equal(self._name(tree), True),
            **dict.fromkeys(_COMPARISONS, self._comparison),
        }

    def predicate(self, tree: Expression) -> Predicate:
        """Convert a condition to a predicate. Raises ``InvalidInputError``, quoting the condition, if unsupported."""
        read = self._readers.get(tree.key)
        unknown = {key for key, value in tree.args.items() if value} - _KNOWN_ARGUMENTS
        if read is None or unknown:
            raise self._refused(tree)
        return read(tree)

    def _comparison(self, tree: Expression) -> Predicate:
        compared, column, literal = _COMPARISONS[tree.key], tree.this, tree.expression
        if column.key != "column" and literal.key == "column":
            compared, column, literal = MIRRORED[compared], literal, column
        return compared(self._name(column), self._value(literal))

    def _is_null(self, tree: Expression) -> Predicate:
        if tree.expression.key != "null":
            raise self._refused(tree)
        return IsNull(self._name(tree.this))

    def _in(self, tree: Expression) -> Predicate:
        if not tree.expressions:
            raise self._refused(tree)
        return In(self._name(tree.this), tuple(self._value(each) for each in tree.expressions))

    def _between(self, tree: Expression) -> Predicate:
        return col(self._name(tree.this)).between(self._value(tree.args["low"]), self._value(tree.args["high"]))

    def _like(self, tree: Expression) -> Predicate:
        column, pattern = self._name(tree.this), self._value(tree.expression)
        prefix = pattern[:-1] if isinstance(pattern, str) and pattern.endswith("%") else None
        literal = pattern if prefix is None else prefix
        if not isinstance(literal, str) or any(special in literal for special in (*_WILDCARDS, "\\")):
            raise self._refused(tree, "LIKE takes a pattern without wildcards, or with one % at its end")
        found = Equal(column, literal) if prefix is None else StartsWith(column, prefix)
        return ~found if tree.args.get("negate") else found

    def _name(self, tree: Expression) -> str:
        if tree.key != "column" or tree.args.get("table") or tree.this.key != "identifier":
            raise self._refused(tree, "write a column's name there")
        return str(tree.name)

    def _value(self, tree: Expression) -> Any:
        inner = tree.this
        match tree.key:
            case "literal" if tree.is_string:
                return str(inner)
            case "literal":
                text = str(inner)
                return int(text) if text.isdecimal() else Decimal(text)
            case "boolean":
                return bool(inner)
            case "neg" if inner.key == "literal" and not inner.is_string:
                return -self._value(inner)
            case "cast" if inner.key == "literal" and inner.is_string:
                # DATE '2026-01-01'; the text is parsed as the column's type.
                return str(inner.this)
            case "null":
                raise self._refused(tree, "a comparison with NULL is never true; use IS NULL or IS NOT NULL")
            case "concat":
                raise self._refused(tree, "write one text")
            case _:
                raise self._refused(tree, "write a literal there")

    def _refused(self, tree: Expression, why: str = "") -> InvalidInputError:
        part = tree.sql(dialect="spark")
        reason = why or f"a filter compares columns with literals; {_EXAMPLE}"
        return InvalidInputError(f"invalid filter {self._text!r} at {part!r}: {reason}")
