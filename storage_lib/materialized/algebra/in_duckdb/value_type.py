"""Types of values in both engines, and the types that Spark gives to what is computed from them.

The rules are those of Spark's ANSI mode (https://spark.apache.org/docs/latest/sql-ref-ansi-compliance.html), and for
decimals those of its ``DecimalPrecision``. A decimal that Spark would round to keep 38 digits is refused.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from storage_lib.materialized.algebra.in_duckdb.not_exact import NotExactError

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "INT",
    "NOTHING",
    "STRING",
    "Kind",
    "ValueType",
    "common_type",
    "decimal",
    "product_type",
    "quotient_type",
    "read_type",
    "sum_type",
    "total_type",
]

DIGITS_MAX = 38
_SCALE_KEPT = 6
"""The scale that Spark keeps of a product or quotient with more than 38 digits."""

_TOTAL_DIGITS = 10
"""Digits that SUM of a decimal has more than its argument."""

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class Kind(enum.Enum):
    """A kind of types, without digits; the value is DuckDB's name."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INTEGER"
    BIGINT = "BIGINT"
    DECIMAL = "DECIMAL"
    DOUBLE = "DOUBLE"
    STRING = "VARCHAR"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
    TIMESTAMP_NTZ = "TIMESTAMP"
    NOTHING = "NULL"


_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}
"""Digits of the decimals to which Spark converts whole numbers."""

_READ = {
    "boolean": Kind.BOOLEAN,
    "tinyint": Kind.TINYINT,
    "byte": Kind.TINYINT,
    "smallint": Kind.SMALLINT,
    "short": Kind.SMALLINT,
    "int": Kind.INT,
    "integer": Kind.INT,
    "bigint": Kind.BIGINT,
    "long": Kind.BIGINT,
    "double": Kind.DOUBLE,
    "string": Kind.STRING,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamp_ntz": Kind.TIMESTAMP_NTZ,
}


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type; ``digits`` and ``scale`` of a decimal."""

    kind: Kind
    digits: int = 0
    scale: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether values are integers of a fixed size."""
        return self.kind in _DIGITS

    @property
    def is_number(self) -> bool:
        """Whether values are integers or decimals."""
        return self.is_whole or self.kind is Kind.DECIMAL

    @property
    def as_decimal(self) -> ValueType:
        """The decimal to which Spark converts a number. Raises ``NotExactError`` for other types."""
        if self.kind is Kind.DECIMAL:
            return self
        if not self.is_whole:
            raise NotExactError(f"{self.spark} in an expression of numbers")
        return ValueType(Kind.DECIMAL, _DIGITS[self.kind], 0)

    @property
    def spark(self) -> str:
        """The type in Spark's words, as of ``DataType.simpleString``."""
        if self.kind is Kind.DECIMAL:
            return f"decimal({self.digits},{self.scale})"
        return "void" if self.kind is Kind.NOTHING else self.kind.name.lower()

    @property
    def duckdb(self) -> str:
        """The type in DuckDB's words."""
        return f"DECIMAL({self.digits},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value


BOOLEAN = ValueType(Kind.BOOLEAN)
INT = ValueType(Kind.INT)
BIGINT = ValueType(Kind.BIGINT)
DOUBLE = ValueType(Kind.DOUBLE)
STRING = ValueType(Kind.STRING)
DATE = ValueType(Kind.DATE)
NOTHING = ValueType(Kind.NOTHING)


def read_type(text: str) -> ValueType:
    """Return a type that Spark's words name; raises ``NotExactError`` for one whose values may differ."""
    plain = text.lower().removesuffix(" not null").strip()
    if plain in _READ:
        return ValueType(_READ[plain])
    found = _DECIMAL.fullmatch(plain)
    if found is None:
        raise NotExactError(f"values of type {plain}")
    return decimal(int(found[1]), int(found[2]))


def decimal(digits: int, scale: int) -> ValueType:
    """Return a decimal type; raises ``NotExactError`` if it is too long."""
    if digits > DIGITS_MAX or scale > digits:
        raise NotExactError(f"decimals of {digits} digits")
    return ValueType(Kind.DECIMAL, digits, scale)


def common_type(one: ValueType, other: ValueType) -> ValueType:
    """Return the type to which Spark converts two values to compare them, or to put them into one column."""
    if one == other or other.kind is Kind.NOTHING:
        return one
    if one.kind is Kind.NOTHING:
        return other
    if one.is_whole and other.is_whole:
        return max(one, other, key=lambda each: _DIGITS[each.kind])
    if not (one.is_number and other.is_number):
        raise NotExactError(f"{one.spark} together with {other.spark}")
    left, right = one.as_decimal, other.as_decimal
    scale = max(left.scale, right.scale)
    return decimal(max(left.digits - left.scale, right.digits - right.scale) + scale, scale)


def sum_type(left: ValueType, right: ValueType) -> ValueType:
    """Return the type of a sum or difference of two decimals."""
    scale = max(left.scale, right.scale)
    return _kept(max(left.digits - left.scale, right.digits - right.scale) + scale + 1, scale)


def product_type(left: ValueType, right: ValueType) -> ValueType:
    """Return the type of the product of two decimals."""
    return _kept(left.digits + right.digits + 1, left.scale + right.scale)


def quotient_type(left: ValueType, right: ValueType) -> ValueType:
    """Return the type of the quotient of two decimals, which is rounded half up to its scale."""
    scale = max(_SCALE_KEPT, left.scale + right.digits + 1)
    whole = left.digits - left.scale + right.scale
    if whole + scale <= DIGITS_MAX:
        return decimal(whole + scale, scale)
    return decimal(DIGITS_MAX, max(DIGITS_MAX - whole, min(scale, _SCALE_KEPT)))


def total_type(of: ValueType) -> ValueType:
    """Return the type of SUM."""
    if of.is_whole:
        return BIGINT
    if of.kind is not Kind.DECIMAL:
        raise NotExactError(f"SUM of {of.spark}")
    return decimal(min(DIGITS_MAX, of.digits + _TOTAL_DIGITS), of.scale)


def _kept(digits: int, scale: int) -> ValueType:
    """Return a decimal type of at most 38 digits, if Spark does not round its values."""
    if digits > DIGITS_MAX and scale > _SCALE_KEPT:
        raise NotExactError(f"decimals of {digits} digits, {scale} of them after the point")
    return decimal(min(digits, DIGITS_MAX), scale)
