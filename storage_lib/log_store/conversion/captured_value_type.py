"""How a record writes the values of one column: what they mean, and in which form they stand in JSON or Avro.

    meaning     spelling in JSON                  in Avro
    BOOLEAN     true, false                       boolean
    INTEGER     a number                          int, long
    FLOAT       a number, "NaN", "Infinity"       float, double
    TEXT        a string                          string, enum
    BYTES       base64, or hex by the mode        bytes, or a string by the mode
    BITS        base64, lowest byte first,        bytes
                without the zero bytes at its end
    DECIMAL     see ``Spelling``
    DATE        days since 1970-01-01, or ISO     int, string
    TIME        a number in ``unit``, or ISO      int, long, string
    TIMESTAMP   without time zone, as TIME        long, string
    INSTANT     with time zone, as TIME           long, string
    MOMENT      either, since the schema does not say; as TIME
    ARRAY, MAP, ROW                               array, map, record

Independent of the table: ``captured_values`` converts such values to a column's type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Meaning(Enum):
    """What a value is; see the module."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    BITS = "bits"
    DECIMAL = "decimal"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INSTANT = "instant"
    MOMENT = "moment"
    ARRAY = "array"
    MAP = "map"
    ROW = "row"


class Spelling(Enum):
    """Form of a value. In Avro, every form of bytes is bytes."""

    PLAIN = "plain"
    """The JSON or Avro value of the meaning; of a date, time or timestamp, a whole number."""

    TEXT = "text"
    """Text: a decimal as digits, a date, time or timestamp as in ISO 8601."""

    NUMBER = "number"
    """A decimal as a double."""

    DIGITS = "digits"
    """A decimal as a JSON number with all of its digits."""

    UNSCALED = "unscaled"
    """A decimal as the bytes of its unscaled value, big-endian two's complement, in JSON in base64."""

    SCALED = "scaled"
    """A decimal as an object of ``scale`` and ``value``, which is spelled as UNSCALED."""

    BASE64 = "base64"
    BASE64_URL = "base64-url-safe"
    HEX = "hex"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """Type of a value as written. ``name`` is that of the record's schema, such as ``io.debezium.data.Uuid``.

    ``bits`` belongs to INTEGER and FLOAT; ``precision`` and ``scale`` to DECIMAL (None: not declared); ``unit`` (ms,
    us, ns) to plain TIME, TIMESTAMP, INSTANT and MOMENT; ``key`` to MAP; ``element`` to ARRAY and MAP; ``fields`` to
    ROW. ``is_guessed``: nothing says that a DECIMAL is UNSCALED but a default. ``default`` is that of a field, as
    written, ``comment`` that of its column; None: the schema has none. Neither tells anything about values, and types
    that differ in them are equal.
    """

    meaning: Meaning
    spelling: Spelling = Spelling.PLAIN
    name: str | None = None
    bits: int | None = None
    precision: int | None = None
    scale: int | None = None
    unit: str | None = None
    key: ValueType | None = None
    element: ValueType | None = None
    fields: tuple[tuple[str, ValueType], ...] = ()
    is_guessed: bool = False
    default: Any = field(default=None, compare=False)
    comment: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        """Describe for messages: ``io.debezium.time.MicroTimestamp``, ``integer of 32 bits``, ``array of text``."""
        if self.name is not None:
            return self.name if self.scale is None else f"{self.name} of scale {self.scale}"
        match self.meaning:
            case Meaning.ARRAY:
                return f"array of {self.element}"
            case Meaning.MAP:
                return f"map of {self.key} to {self.element}"
            case Meaning.ROW:
                return f"row of {', '.join(name for name, _ in self.fields) or 'no fields'}"
            case Meaning.INTEGER | Meaning.FLOAT:
                return f"{self.meaning.value} of {self.bits} bits"
        how = "" if self.spelling is Spelling.PLAIN else f" as {self.spelling.value}"
        return f"{self.meaning.value}{how}{f' in {self.unit}' if self.unit else ''}"


def row_of(fields: dict[str, ValueType], name: str | None = None) -> ValueType:
    """Return the type of a row with these fields."""
    return ValueType(meaning=Meaning.ROW, fields=tuple(fields.items()), name=name)


BOOLEAN = ValueType(meaning=Meaning.BOOLEAN)
INT8, INT16, INT32, INT64 = (ValueType(meaning=Meaning.INTEGER, bits=bits) for bits in (8, 16, 32, 64))
FLOAT, DOUBLE = (ValueType(meaning=Meaning.FLOAT, bits=bits) for bits in (32, 64))
TEXT = ValueType(meaning=Meaning.TEXT)
BYTES = ValueType(meaning=Meaning.BYTES, spelling=Spelling.BASE64)
