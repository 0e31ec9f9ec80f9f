"""The dialect of Spark 4 for sqlglot, in which all text of Spark SQL is parsed, with the precedence of Spark's grammar.

    NOT, !        of a whole condition: NOT a = b IN (c) is NOT ((a = b) IN (c))
    predicates    one after a value: IN, BETWEEN, LIKE, ILIKE, RLIKE, IS; their operands are values, comparisons as well
    values        comparisons < | < ^ < & < shifts < + - || < * / % DIV < unary + - ~ < :: [] . COLLATE

sqlglot's own order has predicates bind tighter than comparisons, and the operators of bits all alike. A minus before a
number belongs to the literal: ``-1::STRING`` is ``(-1)::STRING``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.dialect import rename_func
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType  # type: ignore[attr-defined, unused-ignore]  # not in its __all__

__all__ = ["SparkText"]

_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
}
_SUFFIXED_NUMBER = re.compile(r"[\d.]+(?:E[+-]?\d+)?(?:BD|[LSYDF])\b", re.IGNORECASE)
_OPERATORS = (
    *_COMPARISONS.values(),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe, exp.Neg, exp.BitwiseNot),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift),
    *(exp.Like, exp.ILike, exp.RegexpLike, exp.Between),
)
_PRECEDENCE = getattr(sqlglot.parser, "IsPredicatePrecedence", None)


class SparkText(Spark):
    """Spark SQL in which a doubled quote in a text is one quote, as since Spark 4.0; sqlglot's has two texts there."""

    class Tokenizer(Spark.Tokenizer):
        """The tokens of Spark SQL."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    class Parser(Spark.Parser):  # type: ignore[misc, valid-type]  # a class that sqlglot assigns
        """The precedence of Spark's operators. The methods have the names by which sqlglot's parser calls them."""

        # IS is parsed with the other predicates.
        IS_PREDICATE_PRECEDENCE: ClassVar[Any] = None if _PRECEDENCE is None else _PRECEDENCE.HIGH
        TERM: ClassVar[dict[Any, Any]] = {
            token: operator for token, operator in Spark.Parser.TERM.items() if token is not TokenType.COLLATE
        }
        UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
            **Spark.Parser.UNARY_PARSERS,
            TokenType.DASH: lambda self: self._negative(),
            TokenType.PLUS: lambda self: self._positive(),
        }

        def _parse_equality(self, *_: object, **__: object) -> exp.Expr | None:
            """Parse an operand of AND: a value and the predicate about it, if one follows."""
            value = self._parse_bitwise()
            found = self._parse_range(value)
            if found is not value and not _is_about(found, value):
                self.raise_error("write parentheses around the first of two predicates")
            return found

        def _parse_comparison(self, *_: object, **__: object) -> exp.Expr | None:
            return self._parse_bitwise()

        def _parse_bitwise(self) -> exp.Expr | None:
            """Parse a value, which all operands of predicates are."""
            this = self._bits_or()
            while self._match_set(_COMPARISONS):
                kind = _COMPARISONS[self._prev.token_type]
                this = self.expression(kind(this=this, expression=self._bits_or()))
            return this

        def _bits_or(self) -> exp.Expr | None:
            return self._bits(TokenType.PIPE, exp.BitwiseOr, self._bits_xor)

        def _bits_xor(self) -> exp.Expr | None:
            return self._bits(TokenType.CARET, exp.BitwiseXor, self._bits_and)

        def _bits_and(self) -> exp.Expr | None:
            return self._bits(TokenType.AMP, exp.BitwiseAnd, self._shifted)

        def _bits(
            self, token: TokenType, kind: type[exp.Binary], operand: Callable[[], exp.Expr | None]
        ) -> exp.Expr | None:
            this = operand()
            while self._match(token):
                this = self.expression(kind(this=this, expression=operand()))
            return this

        def _shifted(self) -> exp.Expr | None:
            this = self._parse_term()
            while True:
                if self._match_pair(TokenType.LT, TokenType.LT):
                    kind: type[exp.Binary] = exp.BitwiseLeftShift
                elif self._match_pair(TokenType.GT, TokenType.GT):
                    if self._match(TokenType.GT):
                        self.raise_error("write shiftrightunsigned(a, b) for a >>> b")
                    kind = exp.BitwiseRightShift
                else:
                    return this
                this = self.expression(kind(this=this, expression=self._parse_term()))

        def _parse_term(self, *given: Any, **named: Any) -> exp.Expr | None:
            this = super()._parse_term(*given, **named)
            while self._match(TokenType.DPIPE):
                joined = exp.DPipe(
                    this=this, expression=self._parse_factor(), safe=not self.dialect.STRICT_STRING_CONCAT
                )
                this = self.expression(joined)
                while self._match_set(self.TERM):
                    kind = self.TERM[self._prev.token_type]
                    this = self.expression(kind(this=this, expression=self._parse_factor()))
            return this

        def _parse_type(self, *given: Any, **named: Any) -> exp.Expr | None:
            is_typed = self._match_set(self.TYPE_TOKENS, advance=False) and self._next.token_type is TokenType.STRING
            this = super()._parse_type(*given, **named)
            if isinstance(this, exp.Cast):
                this = _typed_first(this) if is_typed else this
                if self._match(TokenType.COLLATE, advance=False) and self._prev.token_type is not TokenType.R_PAREN:
                    self.raise_error("write CAST(... AS ...) or parentheses before COLLATE")
            return self._collated(this)

        def _parse_types(self, *given: Any, **named: Any) -> exp.Expr | None:
            this = super()._parse_types(*given, **named)
            collation = this.args.get("collate") if isinstance(this, exp.DataType) else None
            if isinstance(collation, exp.Column):
                this.set("collate", exp.var(collation.sql("spark")))  # else, it would be sought in the tables
            return this

        def _collated(self, this: exp.Expr | None) -> exp.Expr | None:
            while this is not None and self._match(TokenType.COLLATE):
                name = self._parse_id_var()
                while self._match(TokenType.DOT):
                    name = self.expression(exp.Dot(this=name, expression=self._parse_id_var()))
                this = self._parse_column_ops(self.expression(exp.Collate(this=this, expression=name)))
            return this

        def _parse_interval(self, *given: Any, **named: Any) -> Any:
            begin = self._index
            interval = super()._parse_interval(*given, **named)
            if not isinstance(interval, exp.Add):
                return interval
            if any(token.token_type is TokenType.PLUS for token in self._tokens[begin : self._index]):
                self.raise_error("write parentheses around the interval before +")
            return exp.Paren(this=interval)

        def _negative(self) -> exp.Expr | None:
            if not self._match(TokenType.NUMBER, advance=False):
                return self.expression(exp.Neg(this=self._parse_unary()))
            if _SUFFIXED_NUMBER.match(self.sql, self._curr.start):
                value = number = self._parse_unary()
                while number is not None and not isinstance(number.this, exp.Literal):
                    number = number.this
                if number is None or number is value:
                    return self.expression(exp.Neg(this=number))
                number.replace(exp.paren(exp.Neg(this=number.copy()), copy=False))
                return value
            return self._collated(self._parse_column_ops(self.expression(exp.Neg(this=self._parse_primary()))))

        def _positive(self) -> exp.Expr | None:
            value = self._parse_unary()
            is_number = isinstance(value, exp.Literal) and not value.is_string
            # Spark makes a number of a text with a plus.
            return value if is_number else self.expression(exp.Anonymous(this="positive", expressions=[value]))

        def expression(self, instance: Any, *given: Any, **named: Any) -> Any:
            """Refuse NOT without parentheses in a value, where Spark takes the word for a name."""
            is_operator = isinstance(instance, _OPERATORS)
            if is_operator and any(isinstance(each, exp.Not) for each in instance.args.values()):
                self.raise_error("write parentheses around NOT")
            return super().expression(instance, *given, **named)

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]  # a class that sqlglot assigns
        """Text of Spark SQL, whose operators stay what they are: others bind otherwise.

        UNIX_DATE stays as well: a difference of dates has another type.
        """

        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **Spark.Generator.TRANSFORMS,
            exp.BitwiseLeftShift: lambda self, node: self.binary(node, "<<"),
            exp.BitwiseRightShift: lambda self, node: self.binary(node, ">>"),
            exp.NullSafeEQ: lambda self, node: self.binary(node, "<=>"),
            exp.UnixDate: rename_func("UNIX_DATE"),
        }


def _typed_first(cast: exp.Cast) -> exp.Expr:
    """Return ``DATE '2026-01-01'::STRING`` as a conversion of the date, not as a date made of a converted text."""
    inner = cast.this
    while isinstance(inner, exp.Cast | exp.Bracket | exp.Dot):
        inner = inner.this
    if inner is cast.this or not isinstance(inner, exp.Literal):
        return cast
    converted = cast.this
    inner.replace(exp.Cast(this=inner.copy(), to=cast.to))
    return converted


def _is_about(predicate: exp.Expr | None, value: exp.Expr | None) -> bool:
    """Return whether a predicate is one, about ``value``, which the parser may have put into parentheses."""
    while isinstance(predicate, exp.Not | exp.Escape):
        predicate = predicate.this
    if predicate is None:
        return False
    about, what = predicate.this, predicate.args.get("expression")
    if isinstance(predicate, exp.Is) and not isinstance(what, exp.Null | exp.Boolean | exp.JSON):
        return False
    if isinstance(what, exp.Any | exp.All) and not isinstance(what.this, exp.Tuple | exp.Paren | exp.Query):
        return False
    return about is value or (isinstance(about, exp.Paren) and about.this is value)
