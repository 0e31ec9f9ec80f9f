"""What Debezium's connectors write for a column of a database: by its documentation, not by our code.

A ``Source`` is a column of a database. It draws values, and says for each mode how a value stands in JSON and in Avro,
with the schemas that describe them. Moments are whole numbers of nanoseconds (days for dates), so that infinity and
years of six digits are values like others.
"""

from __future__ import annotations

import base64
import random
import string
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal
from typing import Any

CONNECT, TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
DAY = 86_400 * 10**9
EXACT = Context(prec=200)
FUTURE, PAST = 9223372036825200000, -9223372036832400000
"""What the connector for PostgreSQL writes for infinity, in microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Settings of a connector."""

    decimal: str = "precise"
    time: str = "adaptive"
    binary: str = "bytes"
    interval: str = "numeric"

    @classmethod
    def draw(cls, chance: random.Random) -> Modes:
        return cls(
            decimal=chance.choice(("precise", "string", "double")),
            time=chance.choice(
                ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
            ),
            binary=chance.choice(("bytes", "base64", "base64-url-safe", "hex")),
            interval=chance.choice(("numeric", "string")),
        )

    def nanos(self, kind: str, precision: int) -> int:
        """Return the nanoseconds of the last digit of a time or timestamp of that precision."""
        if self.time == "isostring":
            return 1
        if self.time == "adaptive_time_microseconds" and kind == "time":
            return 10**3
        fixed = {"connect": 10**6, "microseconds": 10**3, "nanoseconds": 1}
        return fixed.get(self.time) or (10**6 if precision <= 3 else 10**3 if precision <= 6 else 1)

    @property
    def options(self) -> dict[str, str]:
        return {
            "debezium.decimal-handling-mode": self.decimal,
            "debezium.time-precision-mode": self.time,
            "debezium.binary-handling-mode": self.binary,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How values are written: Connect's schema without the field's name, and encodings of one value."""

    schema: Mapping[str, Any]
    json: Callable[[Any], Any] = lambda value: value
    avro: Callable[[Any], Any] = lambda value: value


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Column of a database: ``kind`` and parameters, as in ``numeric(10,2)``.

    ``is_wide``: timestamps may be infinity or far, which nanoseconds in 64 bits can't count, and times may lie outside
    of a day, which ISO 8601 can't express.
    """

    kind: str
    precision: int = 0
    scale: int = 0
    is_wide: bool = True
    parts: Mapping[str, Source] = field(default_factory=dict)

    def draw(self, chance: random.Random) -> Any:
        """Return a value."""
        return _DRAW[self.kind](self, chance)

    def form(self, modes: Modes) -> Form:
        """Return how the connector writes values in these modes."""
        return _FORM[self.kind](self, modes)

    @property
    def table_type(self) -> str:
        """Type of a table that is declared like the column."""
        return _TABLE_TYPE[self.kind](self)


SCALARS = (
    "boolean",
    "smallint",
    "integer",
    "bigint",
    "real",
    "double",
    "text",
    "uuid",
    "json",
    "enum",
    "bytea",
    "bits",
    "numeric",
    "any numeric",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "interval",
    "year",
)
NESTED = ("array", "hstore", "row")


def a_source(chance: random.Random, modes: Modes, kinds: tuple[str, ...] = (*SCALARS, *NESTED)) -> Source:
    """Draw a column that a connector in these modes can write."""
    kind = chance.choice(kinds)
    is_wide = modes.time != "nanoseconds"
    match kind:
        case "numeric":
            precision = chance.randint(1, 38)
            return Source(kind=kind, precision=precision, scale=chance.randint(0, precision))
        case "time" | "timestamp":
            digits = chance.randint(0, 9 if chance.random() < 0.2 else 6)
            return Source(kind=kind, precision=digits, is_wide=is_wide and (kind, modes.time) != ("time", "isostring"))
        case "bits":
            return Source(kind=kind, precision=chance.randint(2, 63))
        case "array":
            return Source(kind=kind, parts={"element": a_source(chance, modes, SCALARS)})
        case "row":
            return Source(kind=kind, parts={name: a_source(chance, modes, SCALARS) for name in ("a", "b")})
        case _:
            return Source(kind=kind, is_wide=is_wide)


# ---------------------------------------------------------------------------------------------------------- values


def _text(_: Source, chance: random.Random) -> str:
    return "".join(chance.choice(string.printable + 'äß€😀\\"{}[],') for _ in range(chance.randint(0, 12)))


def _number(of: Source, chance: random.Random) -> Decimal:
    digits = chance.randint(1, of.precision)
    unscaled = chance.choice((0, 10**digits - 1, chance.randrange(10**digits))) * chance.choice((1, -1))
    return Decimal(unscaled).scaleb(-of.scale, EXACT)


def _any_number(_: Source, chance: random.Random) -> Decimal:
    return Decimal(chance.randint(-(10**12), 10**12)).scaleb(-chance.randint(0, 10), EXACT)


def _float(of: Source, chance: random.Random) -> float:
    value = chance.choice(
        (0.0, -0.0, 0.1, 1e-30, float("nan"), float("inf"), -float("inf"), chance.gauss(0, 1e6), chance.random())
    )
    return struct.unpack("<f", struct.pack("<f", value))[0] if of.kind == "real" else value


def _far(of: Source, chance: random.Random, near: int) -> int:
    """Return ``near``, or rarely a moment that no column holds; all in nanoseconds."""
    if not of.is_wide or chance.random() < 0.9:
        return near
    return chance.choice((FUTURE * 10**3, PAST * 10**3, 253_402_300_800 * 10**9, -62_135_596_801 * 10**9))


def _date(_: Source, chance: random.Random) -> int:
    return chance.choice((0, chance.randint(-719_162, 2_932_896), -719_162, 2_932_896, chance.randint(-(10**7), 10**7)))


def _time(of: Source, chance: random.Random) -> int:
    step = 10 ** (9 - of.precision)
    near = chance.choice((0, DAY // step - 1, chance.randrange(DAY // step))) * step
    return near if not of.is_wide or chance.random() < 0.9 else chance.choice((DAY, -step, DAY + step))


def _timestamp(of: Source, chance: random.Random) -> int:
    step = 10 ** (9 - of.precision)
    near = chance.choice((0, -1, chance.randint(-(10**18) // step, 10**18 // step))) * step
    return near if of.precision > 6 else _far(of, chance, near)


def _timestamptz(of: Source, chance: random.Random) -> int:
    near = chance.randint(-(10**15), 10**16) * 10**3
    return _far(of, chance, near)


_DRAW: Mapping[str, Callable[[Source, random.Random], Any]] = {
    "boolean": lambda _, chance: chance.random() < 0.5,
    "smallint": lambda _, chance: chance.choice((0, -(2**15), 2**15 - 1, chance.randint(-100, 100))),
    "integer": lambda _, chance: chance.choice((0, -(2**31), 2**31 - 1, chance.randint(-100, 100))),
    "bigint": lambda _, chance: chance.choice((0, -(2**63), 2**63 - 1, 2**53 + 1, chance.randint(-100, 100))),
    "real": _float,
    "double": _float,
    "text": _text,
    "uuid": lambda _, chance: f"{chance.getrandbits(128):032x}",
    "json": lambda _, chance: f'{{"a": {chance.randint(0, 9)}}}',
    "enum": lambda _, chance: chance.choice(("red", "green")),
    "bytea": lambda _, chance: chance.randbytes(chance.randint(0, 9)),
    "bits": lambda of, chance: chance.getrandbits(of.precision),
    "numeric": _number,
    "any numeric": _any_number,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "timetz": lambda _, chance: chance.randrange(DAY // 10**3) * 10**3,
    "interval": lambda _, chance: chance.randint(-(10**12), 10**12),
    "year": lambda _, chance: chance.randint(1901, 2155),
    "array": lambda of, chance: _some(of.parts["element"], chance),
    "hstore": lambda of, chance: {
        _text(of, chance): (None if chance.random() < 0.2 else _text(of, chance)) for _ in range(chance.randint(0, 3))
    },
    "row": lambda of, chance: {
        name: None if chance.random() < 0.2 else each.draw(chance) for name, each in of.parts.items()
    },
}


def _some(element: Source, chance: random.Random) -> list[Any]:
    return [None if chance.random() < 0.2 else element.draw(chance) for _ in range(chance.randint(0, 3))]


# ----------------------------------------------------------------------------------------------------------- forms


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _unscaled(number: Decimal, scale: int) -> bytes:
    value = int(number.scaleb(scale, EXACT))
    # As BigInteger.toByteArray: the fewest bytes of two's complement.
    bits = (value if value >= 0 else ~value).bit_length() + 1
    return value.to_bytes((bits + 7) // 8, signed=True)


def _decimal_form(of: Source, modes: Modes) -> Form:
    if modes.decimal == "string":
        return Form(schema={"type": "string"}, json=lambda it: format(it, "f"), avro=lambda it: format(it, "f"))
    if modes.decimal == "double":
        return Form(schema={"type": "double"}, json=float, avro=float)
    if of.kind == "any numeric":
        schema = {
            "type": "struct",
            "name": "io.debezium.data.VariableScaleDecimal",
            "version": 1,
            "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
        }

        def parts(number: Decimal) -> tuple[int, bytes]:
            scale = -int(number.as_tuple().exponent)
            return scale, _unscaled(number, scale)

        return Form(
            schema=schema,
            json=lambda it: {"scale": parts(it)[0], "value": _base64(parts(it)[1])},
            avro=lambda it: {"scale": parts(it)[0], "value": parts(it)[1]},
        )
    parameters = {"scale": str(of.scale), "connect.decimal.precision": str(of.precision)}
    return Form(
        schema={"type": "bytes", "name": f"{CONNECT}Decimal", "version": 1, "parameters": parameters},
        json=lambda it: _base64(_unscaled(it, of.scale)),
        avro=lambda it: _unscaled(it, of.scale),
    )


_PREFIX = {10**6: "", 10**3: "Micro", 1: "Nano"}


def _named(physical: str, name: str) -> dict[str, Any]:
    return {"type": physical, "name": name, "version": 1}


def _numbers(physical: str, name: str, nanos: int) -> Form:
    return Form(schema=_named(physical, name), json=lambda it: it // nanos, avro=lambda it: it // nanos)


def _texts(name: str, text: Callable[[Any], str]) -> Form:
    return Form(schema=_named("string", name), json=text, avro=text)


def _clock(nanos: int) -> str:
    seconds, rest = divmod(nanos, 10**9)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if not rest else f"{text}.{rest:09}".rstrip("0")


def civil(days: int) -> str:
    """Format a day as java.time does: a sign before a year of more than four digits."""
    # 400 years are 146097 days; Python's calendar ends at the year 9999.
    from datetime import date, timedelta

    eras, rest = divmod(days + 719_162, 146_097)
    inside = date(1, 1, 1) + timedelta(days=rest)
    year = inside.year + 400 * eras
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{inside.month:02}-{inside.day:02}"


def _moment(nanos: int) -> str:
    days, rest = divmod(nanos, DAY)
    return f"{civil(days)}T{_clock(rest)}Z"


def _zoned(nanos: int) -> str:
    if nanos in (FUTURE * 10**3, PAST * 10**3):
        return "infinity" if nanos > 0 else "-infinity"
    return _moment(nanos)


def _date_form(_: Source, modes: Modes) -> Form:
    if modes.time == "isostring":
        return _texts(f"{TIME}IsoDate", lambda it: f"{civil(it)}Z")
    return Form(schema=_named("int32", f"{CONNECT}Date" if modes.time == "connect" else f"{TIME}Date"))


def _time_form(of: Source, modes: Modes) -> Form:
    if modes.time == "isostring":
        return _texts(f"{TIME}IsoTime", lambda it: f"{_clock(it)}Z")
    nanos = modes.nanos("time", of.precision)
    if modes.time == "connect":
        return _numbers("int32", f"{CONNECT}Time", nanos)
    return _numbers("int32" if nanos == 10**6 else "int64", f"{TIME}{_PREFIX[nanos]}Time", nanos)


def _timestamp_form(of: Source, modes: Modes) -> Form:
    if modes.time == "isostring":
        return _texts(f"{TIME}IsoTimestamp", _moment)
    nanos = modes.nanos("timestamp", of.precision)
    return _numbers(
        "int64", f"{CONNECT}Timestamp" if modes.time == "connect" else f"{TIME}{_PREFIX[nanos]}Timestamp", nanos
    )


def _binary_form(_: Source, modes: Modes) -> Form:
    text: Callable[[bytes], str] = {
        "bytes": _base64,
        "base64": _base64,
        "base64-url-safe": lambda it: base64.urlsafe_b64encode(it).decode(),
        "hex": bytes.hex,
    }[modes.binary]
    if modes.binary == "bytes":
        return Form(schema={"type": "bytes"}, json=text)
    return Form(schema={"type": "string"}, json=text, avro=text)


def _bits_form(of: Source, _: Modes) -> Form:
    def content(value: int) -> bytes:
        return value.to_bytes((of.precision + 7) // 8, "little").rstrip(b"\0")

    schema = {**_named("bytes", "io.debezium.data.Bits"), "parameters": {"length": str(of.precision)}}
    return Form(schema=schema, json=lambda it: _base64(content(it)), avro=content)


def _float_form(of: Source, _: Modes) -> Form:
    def number(value: float) -> float | str:
        if value != value or value in (float("inf"), -float("inf")):  # noqa: PLR0124  NaN
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"  # noqa: PLR0124
        return _shortest(value) if of.kind == "real" else value

    return Form(schema={"type": "float" if of.kind == "real" else "double"}, json=number)


def _shortest(value: float) -> float:
    """Return the double whose text is the shortest that stands for a float of 32 bits."""
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return float(next(each for each in texts if struct.pack("<f", float(each)) == struct.pack("<f", value)))


def _interval_form(_: Source, modes: Modes) -> Form:
    if modes.interval == "string":
        return _texts(f"{TIME}Interval", lambda it: f"P0Y0M0DT0H0M{it / 10**6:.6f}S")
    return Form(schema=_named("int64", f"{TIME}MicroDuration"))


def _array_form(of: Source, modes: Modes) -> Form:
    inside = of.parts["element"].form(modes)
    return Form(
        schema={"type": "array", "items": {**inside.schema, "optional": True}},
        json=lambda it: [None if each is None else inside.json(each) for each in it],
        avro=lambda it: [None if each is None else inside.avro(each) for each in it],
    )


def _row_form(of: Source, modes: Modes) -> Form:
    inside = {name: each.form(modes) for name, each in of.parts.items()}
    fields = [{**each.schema, "optional": True, "field": name} for name, each in inside.items()]
    return Form(
        schema={"type": "struct", "name": "shop.Row", "fields": fields},
        json=lambda it: {name: None if it[name] is None else each.json(it[name]) for name, each in inside.items()},
        avro=lambda it: {name: None if it[name] is None else each.avro(it[name]) for name, each in inside.items()},
    )


_TEXT_MAP = {"type": "map", "keys": {"type": "string"}, "values": {"type": "string", "optional": True}}
_FORM: Mapping[str, Callable[[Source, Modes], Form]] = {
    "boolean": lambda *_: Form(schema={"type": "boolean"}),
    "smallint": lambda *_: Form(schema={"type": "int16"}),
    "integer": lambda *_: Form(schema={"type": "int32"}),
    "bigint": lambda *_: Form(schema={"type": "int64"}),
    "real": _float_form,
    "double": _float_form,
    "text": lambda *_: Form(schema={"type": "string"}),
    "uuid": lambda *_: Form(schema=_named("string", "io.debezium.data.Uuid")),
    "json": lambda *_: Form(schema=_named("string", "io.debezium.data.Json")),
    "enum": lambda *_: Form(
        schema={**_named("string", "io.debezium.data.Enum"), "parameters": {"allowed": "red,green"}}
    ),
    "bytea": _binary_form,
    "bits": _bits_form,
    "numeric": _decimal_form,
    "any numeric": _decimal_form,
    "date": _date_form,
    "time": _time_form,
    "timestamp": _timestamp_form,
    "timestamptz": lambda *_: _texts(f"{TIME}ZonedTimestamp", _zoned),
    "timetz": lambda *_: _texts(f"{TIME}ZonedTime", lambda it: f"{_clock(it)}Z"),
    "interval": _interval_form,
    "year": lambda *_: Form(schema=_named("int32", f"{TIME}Year")),
    "array": _array_form,
    "hstore": lambda *_: Form(schema=_TEXT_MAP),
    "row": _row_form,
}
_TABLE_TYPE: Mapping[str, Callable[[Source], str]] = {
    "boolean": lambda _: "BOOLEAN",
    "smallint": lambda _: "SMALLINT",
    "integer": lambda _: "INT",
    "bigint": lambda _: "BIGINT",
    "real": lambda _: "FLOAT",
    "double": lambda _: "DOUBLE",
    "text": lambda _: "STRING",
    "uuid": lambda _: "STRING",
    "json": lambda _: "STRING",
    "enum": lambda _: "STRING",
    "bytea": lambda _: "BYTES",
    "bits": lambda _: "BYTES",
    "numeric": lambda of: f"DECIMAL({of.precision}, {of.scale})",
    "any numeric": lambda _: "DECIMAL(38, 10)",
    "date": lambda _: "DATE",
    "time": lambda of: f"TIME({of.precision})",
    "timestamp": lambda of: f"TIMESTAMP({min(of.precision, 6)})",  # a table can't have more digits
    "timestamptz": lambda _: "TIMESTAMP_LTZ(6)",
    "timetz": lambda _: "STRING",
    "interval": lambda _: "BIGINT",
    "year": lambda _: "INT",
    "array": lambda of: f"ARRAY<{of.parts['element'].table_type}>",
    "hstore": lambda _: "MAP<STRING, STRING>",
    "row": lambda of: f"ROW<{', '.join(f'{name} {each.table_type}' for name, each in of.parts.items())}>",
}

# ------------------------------------------------------------------------------------------------------------ Avro

_AVRO: Mapping[str, str | dict[str, str]] = {
    "boolean": "boolean",
    "int8": {"type": "int", "connect.type": "int8"},
    "int16": {"type": "int", "connect.type": "int16"},
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
}


def avro_schema(schema: Mapping[str, Any], name: str = "v") -> Any:
    """Return the Avro schema that Confluent's converter makes of Connect's, nullable where that is optional."""
    found = _avro_schema(schema, name)
    return ["null", found] if schema.get("optional") else found


def _avro_schema(schema: Mapping[str, Any], name: str) -> Any:
    kind = schema["type"]
    if kind == "array":
        return {"type": "array", "items": avro_schema(schema["items"], f"{name}_item")}
    if kind == "map":
        return {"type": "map", "values": avro_schema(schema["values"], f"{name}_value")}
    extra = {f"connect.{key}": schema[key] for key in ("name", "version", "parameters") if key in schema}
    if kind == "struct":
        fields = [
            {"name": each["field"], "type": avro_schema(each, f"{name}_{each['field']}")} for each in schema["fields"]
        ]
        return {"type": "record", "name": f"Record_{name}", "fields": fields, **extra}
    if not extra:
        return _AVRO[kind]
    logical: dict[str, Any] = {}
    if schema["name"] == f"{CONNECT}Decimal":
        logical = {"logicalType": "decimal", "precision": 64, "scale": int(schema["parameters"]["scale"])}
    elif schema["name"] in (f"{CONNECT}Timestamp", f"{CONNECT}Time", f"{CONNECT}Date"):
        word = {"Timestamp": "timestamp-millis", "Time": "time-millis", "Date": "date"}
        logical = {"logicalType": word[schema["name"].removeprefix(CONNECT)]}
    plain = _AVRO[kind]
    return ({"type": plain} if isinstance(plain, str) else {**plain}) | extra | logical
