"""Kinds of columns of the game: PostgreSQL's type, ours, values of it, and how both sides' values are compared."""

from __future__ import annotations

import datetime as dt
import random
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["KEY_KINDS", "KINDS", "Kind", "plain"]

UNSENT = "__debezium_unavailable_value"
LONG_BYTES = 2_600
"""More than PostgreSQL stores inside a row: a value outside is not sent unless it changes."""
_TEXTS = ("", "a", "tea", "b c", "ä", "😀", "NULL", '"quoted"', "back\\slash", "line\nfeed", '{"op":"d"}')
# Not before the Gregorian calendar: Debezium's snapshots, other than its streams, read such times in the Julian one.
_DAYS = (dt.date(1600, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31))
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a value without a zone


@dataclass(frozen=True, slots=True)
class Kind:
    """``postgres`` and ``ours`` are the types, ``draw`` a new value as psycopg takes it, ``select`` how it is read."""

    postgres: str
    ours: str
    draw: Callable[[random.Random], Any]
    select: str = "{}"
    is_long: bool = False


def plain(value: Any) -> Any:
    """Return a value that equals another side's if it is the same; hashable."""
    match value:
        case float():
            return ("float", "nan" if value != value else repr(value))  # noqa: PLR0124 - NaN
        case list() | tuple():
            return tuple(plain(each) for each in value)
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        case memoryview() | bytearray():
            return bytes(value)
        case uuid.UUID():
            return str(value)
    return value


def _integer(bits: int) -> Callable[[random.Random], int]:
    limit = 1 << (bits - 1)
    return lambda chance: chance.choice((0, 1, -1, limit - 1, -limit, chance.randrange(-limit, limit)))


def _real(chance: random.Random) -> float:
    value = chance.choice((0.0, -0.0, 1.5, 3.4028234663852886e38, 1e-37, chance.uniform(-1e6, 1e6), float("nan")))
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _double(chance: random.Random) -> float:
    special = (0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, float("nan"), float("inf"), float("-inf"))
    return chance.choice((*special, chance.uniform(-1e9, 1e9)))


def _decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    limit = 10**precision - 1

    def draw(chance: random.Random) -> Decimal:
        unscaled = chance.choice((0, 1, -1, limit, -limit, chance.randint(-limit, limit), chance.randint(-999, 999)))
        digits = tuple(map(int, str(abs(unscaled))))
        return Decimal((int(unscaled < 0), digits, -scale))

    return draw


def _text(longest: int) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(_TEXTS)[:longest]


def _long_text(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(_TEXTS)
    return f"{chance.randrange(1000)} " * LONG_BYTES


def _long_bytes(chance: random.Random) -> bytes:
    return chance.randbytes(chance.choice((0, 1, 5, LONG_BYTES)))


def _long_texts(chance: random.Random) -> list[str | None]:
    drawn: tuple[list[str | None], ...] = ([], ["a", None, ""], [_long_text(chance), "short"])
    return chance.choice(drawn)


def _day(chance: random.Random) -> dt.date:
    return chance.choice((*_DAYS, dt.date(2026, 1, 1) + dt.timedelta(chance.randrange(1000))))


def _moment(unit: int) -> Callable[[random.Random], dt.datetime]:
    """Return moments of a whole number of ``unit`` microseconds."""

    def draw(chance: random.Random) -> dt.datetime:
        micros = chance.choice((0, -1, 1_767_323_045_678_901, chance.randrange(-(10**15), 4 * 10**15)))
        special = (dt.datetime(1600, 1, 2), dt.datetime(9999, 12, 30, 23, 59, 59))  # noqa: DTZ001 - without a zone
        return chance.choice((*special, _EPOCH + dt.timedelta(microseconds=micros // unit * unit)))

    return draw


def _instant(chance: random.Random) -> dt.datetime:
    return _moment(1)(chance).replace(tzinfo=dt.UTC)


def _time(chance: random.Random) -> dt.time:
    return chance.choice((dt.time(), dt.time(23, 59, 59, 999_000), dt.time(chance.randrange(24), 5, 6, 7_000)))


def _uuid(chance: random.Random) -> uuid.UUID:
    return uuid.UUID(int=chance.getrandbits(128))


KINDS: dict[str, Kind] = {
    "boolean": Kind("boolean", "BOOLEAN", lambda chance: chance.random() < 0.5),
    "smallint": Kind("smallint", "SMALLINT", _integer(16)),
    "int": Kind("int", "INT", _integer(32)),
    "bigint": Kind("bigint", "BIGINT", _integer(64)),
    "real": Kind("real", "FLOAT", _real, "{}::float8"),
    "double": Kind("double precision", "DOUBLE", _double),
    "numeric": Kind("numeric(10,2)", "DECIMAL(10, 2)", _decimal(10, 2)),
    "wide": Kind("numeric(38,10)", "DECIMAL(38, 10)", _decimal(38, 10)),
    "varchar": Kind("varchar(20)", "VARCHAR(20)", _text(20)),
    "text": Kind("text", "STRING", _long_text, is_long=True),
    "bytes": Kind("bytea", "BYTES", _long_bytes, is_long=True),
    "day": Kind("date", "DATE", _day),
    "time": Kind("time(3)", "TIME(3)", _time),
    "moment_millis": Kind("timestamp(3)", "TIMESTAMP(3)", _moment(1_000)),
    "moment": Kind("timestamp(6)", "TIMESTAMP(6)", _moment(1)),
    "instant": Kind("timestamptz", "TIMESTAMP_LTZ(6)", _instant),
    "uuid": Kind("uuid", "STRING", _uuid),
    "json": Kind("jsonb", "STRING", lambda chance: chance.choice(('{"a": [1, null]}', "[]", "null")), "{}::text"),
    "mood": Kind("mood", "STRING", lambda chance: chance.choice(("sad", "ok", "happy")), "{}::text"),
    "ints": Kind(
        "int[]", "ARRAY<INT>", lambda chance: chance.choice(([], [1, None, -3], list(range(700)))), is_long=True
    ),
    "texts": Kind("text[]", "ARRAY<STRING>", _long_texts, is_long=True),
}
KEY_KINDS: dict[str, Kind] = {
    "int": Kind("int", "INT", lambda chance: chance.randrange(40)),
    "bigint": Kind("bigint", "BIGINT", lambda chance: chance.choice((0, 1, -5, 1 << 62, *range(10, 40)))),
    "varchar": Kind("varchar(20)", "VARCHAR(20)", lambda chance: f"k{chance.randrange(40)}"),
    "day": Kind("date", "DATE", lambda chance: dt.date(2026, 1, 1) + dt.timedelta(chance.randrange(40))),
    "numeric": Kind("numeric(10,2)", "DECIMAL(10, 2)", lambda chance: Decimal(chance.randrange(4000)) / 100),
}
"""Kinds of key columns; few values, so that deleted keys come back."""
