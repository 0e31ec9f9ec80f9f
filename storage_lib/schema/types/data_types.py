"""Logical types of columns, their text in schema files (docs/format.md, 1.3) and the corresponding Arrow types.

Contains only scalar types and VARIANT, which is opaque; types with parts (ARRAY, MAP, ROW, ...) are in
``nested_types``. ``type_spelling`` reads and writes all of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.schema.types.variant import VARIANT_ARROW, is_variant

DECIMAL_PRECISION_MAX = 38
LENGTH_MAX = 2_147_483_647
TEMPORAL_PRECISION_MAX = 9
_TIMESTAMP_PRECISION_DEFAULT = 6
_MILLIS_DIGITS = 3
_MICROS_DIGITS = 6


class TypeRoot(Enum):
    """Family of a type; the value is its name in schema files."""

    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INTEGER = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    VARIANT = "VARIANT"


_WITH_LENGTH = frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR, TypeRoot.BINARY, TypeRoot.VARBINARY})
_UNBOUNDED = {TypeRoot.VARCHAR: "STRING", TypeRoot.VARBINARY: "BYTES"}
_PRECISION_DEFAULT = {
    TypeRoot.DECIMAL: 10,
    TypeRoot.TIME: 0,
    TypeRoot.TIMESTAMP: _TIMESTAMP_PRECISION_DEFAULT,
    TypeRoot.TIMESTAMP_LTZ: _TIMESTAMP_PRECISION_DEFAULT,
}


@dataclass(frozen=True, slots=True)
class DataType:
    """A type; this class represents scalar types. Defaults are filled in, so equal types are equal values.

    ``length`` (characters or bytes) is None for STRING and BYTES, which have no limit. Raises ``InvalidInputError``
    for a length, precision or scale that the type does not have.
    """

    root: TypeRoot
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    def __post_init__(self) -> None:
        """Fill in defaults and refuse invalid parameters."""
        if self.length == LENGTH_MAX and self.root in _UNBOUNDED:
            object.__setattr__(self, "length", None)
        elif self.length is None and self.root in (TypeRoot.CHAR, TypeRoot.BINARY):
            object.__setattr__(self, "length", 1)
        if self.precision is None and self.root in _PRECISION_DEFAULT:
            object.__setattr__(self, "precision", _PRECISION_DEFAULT[self.root])
        if self.scale is None and self.root is TypeRoot.DECIMAL:
            object.__setattr__(self, "scale", 0)
        _check_parameters(self)

    @property
    def arrow(self) -> pa.DataType:
        """Arrow type of such a column inside the library."""
        return _arrow_of(self.root, self.precision, self.scale)

    def not_null(self) -> DataType:
        """Return the type as NOT NULL."""
        return self.with_nullable(nullable=False)

    def with_nullable(self, nullable: bool) -> DataType:  # noqa: FBT001  the name says what it means
        """Return the type with this nullability."""
        return self if nullable == self.nullable else replace(self, nullable=nullable)

    def __str__(self) -> str:
        """Format as in schema files: ``DECIMAL(10, 2) NOT NULL``."""
        return _spelling(self) + ("" if self.nullable else " NOT NULL")


def parse_data_type(text: str) -> DataType:
    """Parse a scalar type, including synonyms, ignoring case and extra white space.

    Raises ``InvalidInputError`` for nested and unknown types.
    """
    match = _SPELLING.fullmatch(text)
    if match is None:
        raise _unsupported(text)
    words = " ".join(match["name"].upper().split())
    numbers = [int(number) for number in match["numbers"].split(",")] if match["numbers"] else []
    zone = " ".join((match["zone"] or "").upper().split())
    nullable = not match["not_null"]
    if zone:
        if words not in ("TIME", "TIMESTAMP") or (words == "TIME" and zone != "WITHOUT TIME ZONE"):
            raise _unsupported(text)
        words = "TIMESTAMP_LTZ" if zone == "WITH LOCAL TIME ZONE" else words
    if words in _PLAIN_SYNONYMS and not numbers:
        return DataType(_PLAIN_SYNONYMS[words], nullable)
    root = _PARAMETER_SYNONYMS.get(words)
    if root is None or len(numbers) > (2 if root is TypeRoot.DECIMAL else 1):
        raise _unsupported(text)
    if root in _WITH_LENGTH:
        # As in SQL, a VARCHAR or VARBINARY without a length holds one character.
        return DataType(root, nullable, length=numbers[0] if numbers else 1)
    precision = numbers[0] if numbers else None
    return DataType(root, nullable, precision=precision, scale=numbers[1] if len(numbers) > 1 else None)


def data_type_of_arrow(arrow: pa.DataType, *, nullable: bool = True) -> DataType:
    """Return the scalar type of an input column of type ``arrow``.

    Raises ``InvalidInputError`` for unsupported Arrow types.
    """
    if isinstance(arrow, pa.DictionaryType):
        arrow = arrow.value_type
    for is_kind, root in _ARROW_KINDS:
        if is_kind(arrow):
            return DataType(root, nullable)
    if pa.types.is_fixed_size_binary(arrow):
        return DataType(TypeRoot.BINARY, nullable, length=arrow.byte_width)
    if pa.types.is_decimal(arrow) and arrow.precision <= DECIMAL_PRECISION_MAX and 0 <= arrow.scale <= arrow.precision:
        return DataType(TypeRoot.DECIMAL, nullable, precision=arrow.precision, scale=arrow.scale)
    if pa.types.is_uint64(arrow):
        return DataType(TypeRoot.DECIMAL, nullable, precision=20, scale=0)
    if pa.types.is_time(arrow):
        return DataType(TypeRoot.TIME, nullable, precision=0 if arrow == pa.time32("s") else _MILLIS_DIGITS)
    if pa.types.is_timestamp(arrow):
        root = TypeRoot.TIMESTAMP if arrow.tz is None else TypeRoot.TIMESTAMP_LTZ
        return DataType(root, nullable, precision=_UNIT_DIGITS[arrow.unit])
    message = f"Arrow type {arrow} can't be a column; {_SUPPORTED}"
    raise InvalidInputError(message)


_SPELLING = re.compile(
    r"\s*(?P<name>[A-Za-z_]+(?:\s+(?:PRECISION|VARYING))?)"
    r"\s*(?:\(\s*(?P<numbers>\d{1,10}\s*(?:,\s*\d{1,10}\s*)?)\))?"
    r"(?:\s+(?P<zone>WITH\s+LOCAL\s+TIME\s+ZONE|WITHOUT\s+TIME\s+ZONE))?"
    r"(?:\s+(?:(?P<not_null>NOT\s+NULL)|NULL))?\s*",
    re.IGNORECASE,
)
_PLAIN_SYNONYMS = {
    "BOOLEAN": TypeRoot.BOOLEAN,
    "BOOL": TypeRoot.BOOLEAN,
    "TINYINT": TypeRoot.TINYINT,
    "BYTE": TypeRoot.TINYINT,
    "SMALLINT": TypeRoot.SMALLINT,
    "SHORT": TypeRoot.SMALLINT,
    "INT": TypeRoot.INTEGER,
    "INTEGER": TypeRoot.INTEGER,
    "BIGINT": TypeRoot.BIGINT,
    "LONG": TypeRoot.BIGINT,
    "FLOAT": TypeRoot.FLOAT,
    "REAL": TypeRoot.FLOAT,
    "DOUBLE": TypeRoot.DOUBLE,
    "DOUBLE PRECISION": TypeRoot.DOUBLE,
    "DATE": TypeRoot.DATE,
    "STRING": TypeRoot.VARCHAR,
    "TEXT": TypeRoot.VARCHAR,
    "BYTES": TypeRoot.VARBINARY,
    "VARIANT": TypeRoot.VARIANT,
}
_PARAMETER_SYNONYMS = {
    "CHAR": TypeRoot.CHAR,
    "CHARACTER": TypeRoot.CHAR,
    "VARCHAR": TypeRoot.VARCHAR,
    "CHAR VARYING": TypeRoot.VARCHAR,
    "CHARACTER VARYING": TypeRoot.VARCHAR,
    "BINARY": TypeRoot.BINARY,
    "VARBINARY": TypeRoot.VARBINARY,
    "BINARY VARYING": TypeRoot.VARBINARY,
    "DECIMAL": TypeRoot.DECIMAL,
    "DEC": TypeRoot.DECIMAL,
    "NUMERIC": TypeRoot.DECIMAL,
    "TIME": TypeRoot.TIME,
    "TIMESTAMP": TypeRoot.TIMESTAMP,
    "TIMESTAMP_NTZ": TypeRoot.TIMESTAMP,
    "TIMESTAMP_LTZ": TypeRoot.TIMESTAMP_LTZ,
}
_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_ARROW_KINDS = (
    (pa.types.is_boolean, TypeRoot.BOOLEAN),
    (pa.types.is_int8, TypeRoot.TINYINT),
    (pa.types.is_int16, TypeRoot.SMALLINT),
    (pa.types.is_uint8, TypeRoot.SMALLINT),
    (pa.types.is_int32, TypeRoot.INTEGER),
    (pa.types.is_uint16, TypeRoot.INTEGER),
    (pa.types.is_int64, TypeRoot.BIGINT),
    (pa.types.is_uint32, TypeRoot.BIGINT),
    (pa.types.is_float16, TypeRoot.FLOAT),
    (pa.types.is_float32, TypeRoot.FLOAT),
    (pa.types.is_float64, TypeRoot.DOUBLE),
    (pa.types.is_date, TypeRoot.DATE),
    (pa.types.is_string, TypeRoot.VARCHAR),
    (pa.types.is_large_string, TypeRoot.VARCHAR),
    (pa.types.is_string_view, TypeRoot.VARCHAR),
    (pa.types.is_binary, TypeRoot.VARBINARY),
    (pa.types.is_large_binary, TypeRoot.VARBINARY),
    (pa.types.is_binary_view, TypeRoot.VARBINARY),
    (is_variant, TypeRoot.VARIANT),
)
_SUPPORTED = (
    "columns may be BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIME(p), CHAR(n), "
    "VARCHAR(n), STRING, BINARY(n), VARBINARY(n), BYTES, TIMESTAMP(p), TIMESTAMP(p) WITH LOCAL TIME ZONE, VARIANT, or "
    "ARRAY<>, MAP<>, MULTISET<> and ROW<> of these. Cast the column, or keep it as a STRING (JSON, for instance)"
)


_KEPT_ELSEWHERE = {
    "VECTOR": "ARRAY<FLOAT>",
    "BLOB": "BYTES (or a STRING that says where each is)",
    "GEOMETRY": "BYTES (well-known binary)",
    "GEOGRAPHY": "BYTES (well-known binary)",
}
"""Unsupported types of Paimon (docs/decisions), each with a supported type that holds the same values."""


def _unsupported(text: str) -> InvalidInputError:
    word = re.split(r"[\s(<]", text.strip().upper(), maxsplit=1)[0]
    if word in _KEPT_ELSEWHERE:
        message = (
            f"column type {text!r} is one of Paimon's that this library does not read or write; make the column "
            f"{_KEPT_ELSEWHERE[word]}. In a table that has it already, copy or drop the column with the engine that "
            "made it, and open the table then"
        )
        return InvalidInputError(message)
    return InvalidInputError(f"column type {text!r} is not supported; {_SUPPORTED}")


def _check_parameters(of: DataType) -> None:
    if of.length is not None and (of.root not in _WITH_LENGTH or not 1 <= of.length <= LENGTH_MAX):
        message = (
            f"column type {of.root.value}({of.length}): a length is for CHAR, VARCHAR, BINARY and VARBINARY, from 1 up"
        )
        raise InvalidInputError(message)
    if of.precision is not None:
        is_decimal = of.root is TypeRoot.DECIMAL
        low, high = (1, DECIMAL_PRECISION_MAX) if is_decimal else (0, TEMPORAL_PRECISION_MAX)
        if of.root not in _PRECISION_DEFAULT or not low <= of.precision <= high:
            message = f"column type {of.root.value}({of.precision}): the precision has to be between {low} and {high}"
            raise InvalidInputError(message)
    if of.scale is not None and (of.root is not TypeRoot.DECIMAL or not 0 <= of.scale <= (of.precision or 0)):
        message = (
            f"column type {of.root.value}({of.precision}, {of.scale}): the scale of a DECIMAL has to be between 0 and "
            "its precision"
        )
        raise InvalidInputError(message)


def _spelling(of: DataType) -> str:
    if of.root is TypeRoot.DECIMAL:
        return f"DECIMAL({of.precision}, {of.scale})"
    if of.root is TypeRoot.TIMESTAMP_LTZ:
        return f"TIMESTAMP({of.precision}) WITH LOCAL TIME ZONE"
    if of.precision is not None:
        return f"{of.root.value}({of.precision})"
    if of.root in _WITH_LENGTH:
        return _UNBOUNDED[of.root] if of.length is None else f"{of.root.value}({of.length})"
    return of.root.value


@cache
def _arrow_of(root: TypeRoot, precision: int | None, scale: int | None) -> pa.DataType:
    if root is TypeRoot.DECIMAL:
        return pa.decimal128(precision, scale)
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        digits = _TIMESTAMP_PRECISION_DEFAULT if precision is None else precision
        unit = "ms" if digits <= _MILLIS_DIGITS else "us" if digits <= _MICROS_DIGITS else "ns"
        return pa.timestamp(unit, tz="UTC" if root is TypeRoot.TIMESTAMP_LTZ else None)
    return _ARROW[root]


_ARROW = {
    TypeRoot.BOOLEAN: pa.bool_(),
    TypeRoot.TINYINT: pa.int8(),
    TypeRoot.SMALLINT: pa.int16(),
    TypeRoot.INTEGER: pa.int32(),
    TypeRoot.BIGINT: pa.int64(),
    TypeRoot.FLOAT: pa.float32(),
    TypeRoot.DOUBLE: pa.float64(),
    TypeRoot.DATE: pa.date32(),
    TypeRoot.TIME: pa.time32("ms"),
    TypeRoot.CHAR: pa.string(),
    TypeRoot.VARCHAR: pa.string(),
    TypeRoot.BINARY: pa.binary(),
    TypeRoot.VARBINARY: pa.binary(),
    TypeRoot.VARIANT: VARIANT_ARROW,
}
