"""Kinds of columns of a MariaDB, with random values of each as they are written in SQL."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["MARIADB_KINDS", "WIDENED", "MariadbKind"]

NULL_CHANCE = 0.2


@dataclass(frozen=True, slots=True)
class MariadbKind:
    """``type`` is the column's, ``value`` draws one that is not null."""

    type: str
    value: Callable[[random.Random], str]

    def draw(self, chance: random.Random) -> str:
        """Return a value, or NULL."""
        return "null" if chance.random() < NULL_CHANCE else self.value(chance)


def _between(least: int, most: int) -> Callable[[random.Random], str]:
    return lambda chance: str(chance.choice((least, most, 0, 1, chance.randint(least, most))))


def _one_of(*values: str) -> Callable[[random.Random], str]:
    return lambda chance: chance.choice(values)


def _bits(count: int) -> Callable[[random.Random], str]:
    return lambda chance: f"b'{chance.choice((0, 1, (1 << count) - 1, chance.getrandbits(count))):b}'"


def _bytes(longest: int) -> Callable[[random.Random], str]:
    return lambda chance: f"x'{chance.randbytes(chance.choice((0, 1, longest))).hex()}'"


def _decimal(whole: int, scale: int, least: int = -1) -> Callable[[random.Random], str]:
    def draw(chance: random.Random) -> str:
        digits = chance.choice((0, 1, 10 ** (whole + scale) - 1, chance.randrange(10 ** (whole + scale))))
        sign = chance.choice(("", "-")) if least < 0 else ""
        return f"{sign}{digits // 10**scale}.{digits % 10**scale:0{scale}d}"

    return draw


_TEXTS = _one_of("''", "'tea'", "'ä'", "'😀'", "'NULL'", "'\"quoted\"'", "'line\\nfeed'", "'tab\\there'", "'it''s'")
_MOMENTS = ("'1970-01-02 00:00:00'", "'2026-01-02 03:04:05'", "'2037-12-31 23:59:59'")
_FRACTIONS = ("'1970-01-02 00:00:00.000001'", "'2026-01-02 03:04:05.678901'", "'2037-12-31 23:59:59.999999'")

MARIADB_KINDS = (
    *(
        MariadbKind(
            f"{name}{suffix}", _between(*((0, (1 << bits) - 1) if suffix else (-(1 << bits - 1), (1 << bits - 1) - 1)))
        )
        for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32))
        for suffix in ("", " unsigned", " unsigned zerofill")
    ),
    MariadbKind("tinyint(1)", _one_of("true", "false", "7")),
    MariadbKind("bigint", _between(-(1 << 63), (1 << 63) - 1)),
    # Greater ones arrive as negative numbers, unless the connector is set otherwise.
    MariadbKind("bigint unsigned", _between(0, (1 << 63) - 1)),
    MariadbKind("float", _one_of("0", "1.5", "-0.25", "3.40282e38", "1e-37")),
    MariadbKind("double", _one_of("0", "0.1", "1.7976931348623157e308", "-5e-324")),
    MariadbKind("decimal(10,2)", _decimal(8, 2)),
    MariadbKind("decimal(10,2) unsigned", _decimal(8, 2, 0)),
    MariadbKind("decimal(20,4)", _decimal(16, 4)),
    MariadbKind("decimal(65,30)", _decimal(35, 30)),
    MariadbKind("bit(1)", _bits(1)),
    MariadbKind("bit(10)", _bits(10)),
    MariadbKind("bit(64)", _bits(64)),
    MariadbKind("char(5)", _one_of("''", "'ab'", "'a b'")),
    MariadbKind("varchar(20)", _TEXTS),
    MariadbKind("text", _TEXTS),
    MariadbKind("longtext", _one_of("''", "repeat('long ', 5000)")),
    MariadbKind("binary(4)", _bytes(4)),
    MariadbKind("varbinary(20)", _bytes(20)),
    MariadbKind("blob", _bytes(3000)),
    MariadbKind("date", _one_of("'1600-01-01'", "'1969-12-31'", "'2026-01-02'", "'9999-12-31'")),
    MariadbKind("time", _one_of("'00:00:00'", "'10:11:12'", "'23:59:59'")),
    MariadbKind("time(6)", _one_of("'00:00:00.000001'", "'10:11:12.123456'", "'23:59:59.999999'")),
    MariadbKind("datetime", _one_of("'1600-01-02 00:00:00'", "'9999-12-31 23:59:59'", *_MOMENTS)),
    MariadbKind("datetime(3)", _one_of("'1969-12-31 23:59:59.999'", "'2026-01-02 03:04:05.678'")),
    MariadbKind("datetime(6)", _one_of("'1969-12-31 23:59:59.999999'", *_FRACTIONS)),
    MariadbKind("timestamp null", _one_of(*_MOMENTS)),
    MariadbKind("timestamp(6) null", _one_of(*_FRACTIONS)),
    MariadbKind("year", _one_of("1901", "1970", "2155")),
    MariadbKind("enum('a','b','c d')", _one_of("'a'", "'b'", "'c d'")),
    MariadbKind("set('x','y','z')", _one_of("''", "'x'", "'x,z'", "'x,y,z'")),
    MariadbKind("json", _one_of('\'{"b": 1, "a": [1.50, null]}\'', "'[]'", "'null'")),
    MariadbKind("uuid", _one_of("'9a4a0e5c-98b2-4b3e-8e5c-000000000001'", "'00000000-0000-0000-0000-000000000000'")),
)

WIDENED = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "int unsigned": "bigint unsigned",
    "float": "double",
    "decimal(10,2)": "decimal(20,4)",
    "datetime(3)": "datetime(6)",
    "varchar(20)": "longtext",
    "binary(4)": "varbinary(20)",
}
"""Types that a column may get without another value."""
