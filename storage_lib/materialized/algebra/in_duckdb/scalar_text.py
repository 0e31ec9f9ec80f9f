"""Expressions over single rows, in DuckDB's words, with the types and values that they have in Spark.

Only what is known to be equal is translated; everything else is refused. An expression that fails in Spark fails in
DuckDB as well, or has the value that an unlimited type would have. DuckDB may compute, and fail for, a row that Spark
leaves out: an error means to ask Spark. Divisions of whole numbers by 0 are errors since DuckDB 2.0. Errors are never
raised by ``error()``, which is volatile, so that DuckDB would not move the conditions around it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from storage_lib.materialized.algebra.in_duckdb.duckdb_text import literal
from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError
from storage_lib.materialized.algebra.in_duckdb.quotients import quotient
from storage_lib.materialized.algebra.in_duckdb.value_type import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    NOTHING,
    STRING,
    Kind,
    ValueType,
    common_type,
    decimal,
    product_type,
    quotient_type,
    read_type,
    sum_type,
)

__all__ = ["ScalarText", "Value", "check_arguments", "converted", "quoted"]

_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_UNITS = ("DAY", "MONTH", "YEAR")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LARGEST_INT = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1
_SHORT_DIGITS = 18
_WIDENED = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)


_ARGUMENTS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Column: frozenset({"this"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Is: frozenset({"this", "expression", "negate"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Concat: frozenset({"expressions", "safe"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.Interval: frozenset({"this", "unit"}),
}
"""Arguments that are translated; any other one may change the meaning."""

_USUAL_ARGUMENTS = frozenset({"this", "expression"})


@dataclass(frozen=True, slots=True)
class Value:
    """An expression of DuckDB in parentheses, or without operators, and its type in both engines.

    ``whole_digits`` are those of a literal integer, of which Spark makes the shortest decimal.
    """

    text: str
    type: ValueType
    whole_digits: int | None = None

    @property
    def as_decimal(self) -> Value:
        """The number as Spark converts it for arithmetic with decimals."""
        of = self.type.as_decimal if self.whole_digits is None else decimal(self.whole_digits, 0)
        return converted(self, of)


def converted(value: Value, to: ValueType) -> Value:
    """Return a value as another type, which holds it or of which both engines say that it does not."""
    return value if value.type == to else Value(f"CAST({value.text} AS {to.duckdb})", to)


class ScalarText:
    """Translates expressions over columns with these ``types``, by their names in a tree."""

    def __init__(self, types: Mapping[str, ValueType]) -> None:
        self._types = types

    def value(self, expression: exp.Expr) -> Value:  # noqa: C901, PLR0912  one case per kind of expression
        """Return the expression for DuckDB. Raises ``NotExactError``."""
        check_arguments(expression, _ARGUMENTS.get(type(expression), _USUAL_ARGUMENTS))
        match expression:
            case exp.Paren():
                return self.value(expression.this)
            case exp.Column():
                return self._column(expression)
            case exp.Literal() | exp.Neg() | exp.Boolean() | exp.Null():
                return self._constant(expression)
            case exp.And() | exp.Or():
                word = "AND" if isinstance(expression, exp.And) else "OR"
                sides = [self.condition(each) for each in (expression.this, expression.expression)]
                return Value(f"({sides[0].text} {word} {sides[1].text})", BOOLEAN)
            case exp.Not():
                return Value(f"(NOT {self.condition(expression.this).text})", BOOLEAN)
            case exp.Is():
                return self._is(expression)
            case exp.In() | exp.Between():
                return self._among(expression)
            case exp.Like():
                return self._like(expression)
            case exp.Case() | exp.If():
                return self._case(expression)
            case exp.Coalesce():
                return self._coalesce(expression)
            case exp.Nullif():
                left, right = self._pair(expression)
                value = self.value(expression.this)
                return Value(f"(CASE WHEN {left.text} = {right.text} THEN NULL ELSE {value.text} END)", value.type)
            case exp.Least() | exp.Greatest():
                return self._extreme(expression)
            case exp.Cast():  # CAST is a TryCast that is not safe.
                return self._cast(expression)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._arithmetic(expression)
            case exp.Div() | exp.Mod() | exp.IntDiv():
                return self._division(expression)
            case exp.Floor() | exp.Abs():
                return self._rounded(expression)
            case exp.Extract() | exp.Year() | exp.Month() | exp.Day() | exp.DayOfMonth():
                return self._part(expression)
            case exp.Lower() | exp.Upper() | exp.Length() | exp.DPipe() | exp.Concat():
                return self._of_strings(expression)
            case exp.Substring() | exp.SplitPart() | exp.Replace():
                return self._part_of_string(expression)
            case _ if type(expression) in _COMPARISONS:
                left, right = self._pair(expression)
                return Value(f"({left.text} {_COMPARISONS[type(expression)]} {right.text})", BOOLEAN)
            case _:
                raise NotExactError(expression.sql("spark"))

    def condition(self, expression: exp.Expr) -> Value:
        """Return a condition. Raises ``NotExactError``, also for what is not one."""
        found = self.value(expression)
        if found.type.kind not in (Kind.BOOLEAN, Kind.NOTHING):
            raise NotExactError(f"{found.type.spark} as a condition")
        return found

    def _column(self, column: exp.Column) -> Value:
        kind = self._types.get(column.name)
        if kind is None:
            raise NotExactError(column.sql("spark"))
        return Value(column.name, kind)

    def _constant(self, constant: exp.Expr) -> Value:
        match constant:
            case exp.Null():
                return Value("NULL", NOTHING)
            case exp.Boolean():
                return Value("true" if constant.this else "false", BOOLEAN)
            case exp.Neg(this=exp.Literal()):
                return _number(constant.this, "-")
            case exp.Neg():
                found = self.value(constant.this)
                if not found.type.is_number:
                    raise NotExactError(f"minus {found.type.spark}")
                return Value(f"CAST(-{found.text} AS {found.type.duckdb})", found.type)
            case exp.Literal(is_string=True):
                return Value(quoted(constant.name), STRING)
            case _:
                return _number(constant)

    def _is(self, test: exp.Expr) -> Value:
        value, what = self.value(test.this), test.expression
        word = "IS NOT" if test.args.get("negate") else "IS"
        if isinstance(what, exp.Null):
            return Value(f"({value.text} {word} NULL)", BOOLEAN)
        if isinstance(what, exp.Boolean) and value.type == BOOLEAN:
            return Value(f"({value.text} {word} {'TRUE' if what.this else 'FALSE'})", BOOLEAN)
        raise NotExactError(test.sql("spark"))

    def _among(self, test: exp.In | exp.Between) -> Value:
        if isinstance(test, exp.Between):
            value, low, high = self._alike([test.this, test.args["low"], test.args["high"]])
            return Value(f"({value.text} BETWEEN {low.text} AND {high.text})", BOOLEAN)
        value, *others = self._alike([test.this, *test.expressions])
        return Value(f"({value.text} IN ({', '.join(each.text for each in others)}))", BOOLEAN)

    def _like(self, like: exp.Like) -> Value:
        value, pattern = self.value(like.this), like.expression
        if value.type != STRING or not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise NotExactError(like.sql("spark"))
        word = "NOT LIKE" if like.args.get("negate") else "LIKE"
        return Value(f"({value.text} {word} {quoted(pattern.name)})", BOOLEAN)

    def _case(self, case: exp.Case | exp.If) -> Value:
        branches = [case] if isinstance(case, exp.If) else case.args["ifs"]
        default = case.args.get("false" if isinstance(case, exp.If) else "default") or exp.null()
        subject = case.this if isinstance(case, exp.Case) else None
        conditions = [each.this if subject is None else _equal(subject, each.this) for each in branches]
        *values, otherwise = self._alike([*(each.args["true"] for each in branches), default])
        tests = [self.condition(each).text for each in conditions]
        whens = " ".join(f"WHEN {test} THEN {each.text}" for test, each in zip(tests, values, strict=True))
        return Value(f"(CASE {whens} ELSE {otherwise.text} END)", otherwise.type)

    def _coalesce(self, coalesce: exp.Coalesce) -> Value:
        values = self._alike([coalesce.this, *coalesce.expressions])
        return Value(f"coalesce({', '.join(each.text for each in values)})", values[0].type)

    def _extreme(self, function: exp.Least | exp.Greatest) -> Value:
        values = self._alike([function.this, *function.expressions])
        if not values[0].type.is_number:
            raise NotExactError(function.sql("spark"))
        return Value(f"{function.key}({', '.join(each.text for each in values)})", values[0].type)

    def _cast(self, cast: exp.Cast) -> Value:
        to = cast.to
        if isinstance(cast.this, exp.Literal) and cast.this.is_string and to.this is exp.DataType.Type.DATE:
            return _date(cast.this)
        value, wanted = self.value(cast.this), read_type(to.sql("spark"))
        if value.type in (wanted, NOTHING):
            return converted(value, wanted)
        if value.type.is_whole and wanted == STRING:
            return converted(value, wanted)
        is_wider = value.type.kind in _WIDENED and wanted.is_whole
        if wanted.is_whole and value.type.kind is Kind.DECIMAL and value.type.scale == 0:
            return converted(value, wanted)
        # Both engines refuse numbers that have too many digits, and round half up.
        if is_wider or (value.type.is_number and wanted.kind is Kind.DECIMAL):
            return converted(value, wanted)
        raise NotExactError(cast.sql("spark"))

    def _arithmetic(self, operation: exp.Binary) -> Value:
        interval = operation.expression
        if isinstance(interval, exp.Interval):
            return self._moved(operation, interval)
        left, right = self.value(operation.this), self.value(operation.expression)
        sign = "+" if isinstance(operation, exp.Add) else "-" if isinstance(operation, exp.Sub) else "*"
        if left.type.is_whole and right.type.is_whole:
            kind = common_type(left.type, right.type)
            return Value(f"({converted(left, kind).text} {sign} {converted(right, kind).text})", kind)
        left, right = left.as_decimal, right.as_decimal
        kind = (product_type if sign == "*" else sum_type)(left.type, right.type)
        if kind.digits > _SHORT_DIGITS:
            # Of short decimals, DuckDB makes a short one.
            left = converted(left, decimal(max(left.type.digits, _SHORT_DIGITS + 1), left.type.scale))
        return Value(f"CAST(({left.text} {sign} {right.text}) AS {kind.duckdb})", kind)

    def _moved(self, operation: exp.Binary, interval: exp.Interval) -> Value:
        value, count, unit = self.value(operation.this), interval.this, interval.args.get("unit")
        name = "" if unit is None else unit.name.upper().removesuffix("S")
        is_known = isinstance(count, exp.Literal) and count.name.isdigit() and name in _UNITS
        if value.type != DATE or not is_known or isinstance(operation, exp.Mul):
            raise NotExactError(operation.sql("spark"))
        sign = "+" if isinstance(operation, exp.Add) else "-"
        return Value(f"CAST(({value.text} {sign} INTERVAL {count.name} {name}) AS DATE)", DATE)

    def _division(self, division: exp.Binary) -> Value:
        left, right = self.value(division.this), self.value(division.expression)
        are_whole = left.type.is_whole and right.type.is_whole
        if not isinstance(division, exp.Div):
            if not are_whole:
                raise NotExactError(division.sql("spark"))
            kind = BIGINT if isinstance(division, exp.IntDiv) else common_type(left.type, right.type)
            sign = "//" if isinstance(division, exp.IntDiv) else "%"
            given = converted(left, kind).text, converted(right, kind).text
            return Value(f"({given[0]} {sign} {given[1]})", kind)
        if are_whole:
            # Of whole numbers, a division by 0 is an error; of floating-point numbers, infinity.
            by = f"(CASE WHEN {right.text} = 0 THEN 1 % {right.text} ELSE {right.text} END)"
            return Value(f"({converted(left, DOUBLE).text} / CAST({by} AS DOUBLE))", DOUBLE)
        left, right = left.as_decimal, right.as_decimal
        kind = quotient_type(left.type, right.type)
        text = quotient(left.text, left.type.scale, right.text, right.type.scale, kind)
        return Value(text, kind)

    def _rounded(self, function: exp.Floor | exp.Abs) -> Value:
        value = self.value(function.this)
        if isinstance(function, exp.Abs) and value.type.is_number:
            return Value(f"abs({value.text})", value.type)
        if isinstance(function, exp.Floor) and value.type == DOUBLE:
            return Value(f"CAST(floor({value.text}) AS BIGINT)", BIGINT)
        raise NotExactError(function.sql("spark"))

    def _part(self, part: exp.Expr) -> Value:
        if isinstance(part, exp.Extract):
            name, value = part.name.upper(), self.value(part.expression)
        else:
            given = part.this.this if isinstance(part.this, exp.TsOrDsToDate) else part.this
            name = "YEAR" if isinstance(part, exp.Year) else "MONTH" if isinstance(part, exp.Month) else "DAY"
            value = self.value(given)
        if name not in _UNITS or value.type != DATE:
            raise NotExactError(part.sql("spark"))
        return Value(f"CAST(extract({name} FROM {value.text}) AS INTEGER)", INT)

    def _of_strings(self, function: exp.Expr) -> Value:
        if isinstance(function, exp.Concat | exp.DPipe):
            given = function.expressions if isinstance(function, exp.Concat) else [function.this, function.expression]
            return Value(f"({' || '.join(each.text for each in self._strings(given))})", STRING)
        [value] = self._strings([function.this])
        if isinstance(function, exp.Length):
            return Value(f"CAST(length({value.text}) AS INTEGER)", INT)
        # The engines know letters of different versions of Unicode. A cast that fails refuses those beyond ASCII.
        name = "lower" if isinstance(function, exp.Lower) else "upper"
        refused = f"CAST(CAST(({value.text} || ' beyond ASCII') AS BOOLEAN) AS VARCHAR)"
        is_plain = f"strlen({value.text}) = length({value.text}) OR {value.text} IS NULL"
        return Value(f"(CASE WHEN {is_plain} THEN {name}({value.text}) ELSE {refused} END)", STRING)

    def _part_of_string(self, function: exp.Expr) -> Value:
        [value] = self._strings([function.this])
        match function:
            case exp.Substring(args={"start": start, **length}) if _counts(start) and _counts(length.get("length")):
                return Value(f"substring({value.text}, {start.name}, {length['length'].name})", STRING)
            case exp.SplitPart(args={"delimiter": by, "part_index": place}) if _is_text(by) and _counts(place):
                return Value(f"split_part({value.text}, {quoted(by.name)}, {place.name})", STRING)
            case exp.Replace(args={"expression": old, "replacement": new}) if _is_text(old) and _is_string(new):
                return Value(f"replace({value.text}, {quoted(old.name)}, {quoted(new.name)})", STRING)
            case _:
                raise NotExactError(function.sql("spark"))

    def _strings(self, expressions: Sequence[exp.Expr]) -> list[Value]:
        values = [self.value(each) for each in expressions]
        if any(each.type != STRING for each in values):
            raise NotExactError(f"texts of {', '.join(each.type.spark for each in values)}")
        return values

    def _pair(self, expression: exp.Expr) -> tuple[Value, Value]:
        left, right = self._alike([expression.this, expression.expression])
        return left, right

    def _alike(self, expressions: Sequence[exp.Expr]) -> list[Value]:
        """Return values of one type."""
        values = [self.value(each) for each in expressions]
        if any(each.type == DATE for each in values):
            values = [
                _date(given) if isinstance(given, exp.Literal) and given.is_string else each
                for given, each in zip(expressions, values, strict=True)
            ]
        kind = values[0].type
        for each in values[1:]:
            kind = common_type(kind, each.type)
        return [each if kind == NOTHING else converted(each, kind) for each in values]


def check_arguments(expression: exp.Expr, known: frozenset[str]) -> None:
    """Raise ``NotExactError`` if an expression has other arguments than the known ones."""
    if any(value and name not in known for name, value in expression.args.items()):
        raise NotExactError(expression.sql("spark"))


def quoted(text: str) -> str:
    """Return a text as a literal. Raises ``NotExactError`` for one with escapes, or a character that ends texts."""
    if "\\" in text or "\0" in text:
        raise NotExactError("a text with a backslash")
    return literal(text)


def _number(literal: exp.Expr, sign: str = "") -> Value:
    text = literal.name
    if text.isdigit():
        number = int(f"{sign}{text}")
        if not -_LARGEST_BIGINT <= number <= _LARGEST_BIGINT:
            raise NotExactError(text)
        kind = INT if -_LARGEST_INT - 1 <= number <= _LARGEST_INT else BIGINT
        return Value(f"CAST('{number}' AS {kind.duckdb})", kind, len(str(abs(number))))
    whole, point, fraction = text.partition(".")
    if not point or not (whole + fraction).isdigit():
        raise NotExactError(f"the number {text}")
    digits = len((whole + fraction).lstrip("0"))
    kind = decimal(max(digits, len(fraction), 1), len(fraction))
    return Value(f"CAST('{sign}{whole or '0'}.{fraction}' AS {kind.duckdb})", kind)


def _date(literal: exp.Expr) -> Value:
    if not _ISO_DATE.fullmatch(literal.name):
        raise NotExactError(f"the date {literal.name}")
    return Value(f"CAST({quoted(literal.name)} AS DATE)", DATE)


def _equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.EQ(this=left.copy(), expression=right.copy())


def _counts(literal: object) -> bool:
    """Return whether a literal is a number from 1 on."""
    return isinstance(literal, exp.Literal) and literal.name.isdigit() and int(literal.name) > 0


def _is_string(literal: object) -> bool:
    return isinstance(literal, exp.Literal) and literal.is_string


def _is_text(literal: object) -> bool:
    return isinstance(literal, exp.Literal) and literal.is_string and bool(literal.name)
