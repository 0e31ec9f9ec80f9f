"""Random expressions of Spark SQL over one table, of every form that DuckDB is trusted to compute, and random rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

from storage_lib.materialized.algebra import SourceTable

COLUMNS = (
    ("tiny", "TINYINT"),
    ("small", "SMALLINT"),
    ("i", "INT"),
    ("j", "INT"),
    ("big", "BIGINT"),
    ("money", "DECIMAL(15,2)"),
    ("rate", "DECIMAL(6,4)"),
    ("whole", "DECIMAL(9,0)"),
    ("text", "STRING"),
    ("word", "STRING"),
    ("day", "DATE"),
    ("flag", "BOOLEAN"),
    ("d", "DOUBLE"),
    ("e", "DOUBLE"),
    ("at", "TIMESTAMP"),
    ("until", "TIMESTAMP"),
    ("plain", "TIMESTAMP_NTZ"),
)
TABLE = SourceTable("shop.t", (("id", "INT NOT NULL"), *COLUMNS), ("id",))
_NUMBERS = ("tiny", "small", "i", "j", "big", "money", "rate", "whole")
_WHOLE = ("tiny", "small", "i", "j", "big")
_TEXTS = ("", "a", "b", "A b", "ab%c", "a_b", "a/b//c", "forest green", "ä", "a\U0001f600b", "x'y", "PROMO BRASS", " a")
_PATTERNS = ("%", "a%", "%b", "%a%b%", "_", "a_b", "PROMO%", "%ä%", "")
_DAYS = (dt.date(100, 1, 1), dt.date(1582, 10, 4), dt.date(1992, 2, 29), dt.date(1995, 1, 31), dt.date(2024, 12, 31))


def random_row(rng: Random, number: int) -> tuple[Any, ...]:
    """Return a row with NULLs, usual values and the largest ones."""
    values = (
        rng.choice([0, 1, -1, 7, 127, -128]),
        rng.choice([0, 3, -250, 32767]),
        rng.choice([0, 1, 2, -3, 100, 2**31 - 1, -(2**31)]),
        rng.choice([1, 2, 3, 5, -7, 10]),
        rng.choice([0, 1, -1, 123456789012, 2**53 + 1, 2**62]),
        Decimal(rng.choice(["0.00", "0.01", "-0.01", "1.05", "123456.78", "-99999.99", "9999999999999.99"])),
        Decimal(rng.choice(["0.0000", "0.0500", "-0.0001", "12.3456", "99.9999"])),
        Decimal(rng.choice([0, 1, 3, -7, 999999999])),
        rng.choice(_TEXTS),
        rng.choice(("apple", "Google", "b", "", "channel/one/two")),
        rng.choice(_DAYS),
        rng.choice([True, False]),
        *(rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), -2.25]) for _ in range(2)),
        *(dt.datetime(rng.choice([1970, 2024]), 1, 3, 4, 5, 6, rng.choice([0, 7]), dt.UTC) for _ in range(2)),
        dt.datetime(rng.choice([1969, 2024]), 1, 3, 4, 5, 6, 7),  # noqa: DTZ001  no zone
    )
    return number, *(None if rng.random() < 0.12 else value for value in values)


class RandomExpressions:
    """Writes expressions with seeded chance."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def value(self, depth: int = 3) -> str:
        """Return an expression of any type."""
        return self._rng.choice([self.number, self.number, self.condition, self.text, self.day])(depth)

    def number(self, depth: int) -> str:
        """Return an expression of numbers."""
        below = depth - 1
        if depth <= 0 or self._chance(0.25):
            return self._rng.choice([*_NUMBERS, *map(str, (0, 1, -2, 100, 0.05, 1.5, "10.00", 7))])
        forms: list[Callable[[], str]] = [
            lambda: f"({self.number(below)} {self._rng.choice('+-*')} {self.number(below)})",
            lambda: f"({self.number(below)} / {self._divisor()})",
            lambda: f"({self._whole(below)} % {self._rng.choice(['j', '3', '-7', '123'])})",
            lambda: f"({self._whole(below)} DIV {self._rng.choice(['j', '3', '-7'])})",
            lambda: f"CAST(floor({self._whole(below)} / {self._rng.choice(['2000', '10', 'j', '-3'])}) AS BIGINT)",
            lambda: f"abs({self.number(below)})",
            lambda: f"(-{self._rng.choice(_NUMBERS)})",
            lambda: f"CASE WHEN {self.condition(below)} THEN {self.number(below)} ELSE {self.number(below)} END",
            lambda: f"CASE {self._whole(0)} WHEN 1 THEN {self.number(below)} WHEN 2 THEN {self.number(below)} END",
            lambda: f"if({self.condition(below)}, {self.number(below)}, {self.number(below)})",
            lambda: f"coalesce({self.number(below)}, {self.number(below)})",
            lambda: f"nullif({self.number(below)}, {self.number(0)})",
            lambda: f"{self._rng.choice(['least', 'greatest'])}({self.number(below)}, {self.number(below)})",
            lambda: f"CAST({self.number(below)} AS DECIMAL({self._rng.choice(['18,3', '38,6', '4,1'])}))",
            lambda: f"CAST({self._whole(below)} AS {self._rng.choice(['BIGINT', 'INT', 'DECIMAL(12,2)'])})",
            lambda: f"CAST(whole AS {self._rng.choice(['BIGINT', 'INT', 'SMALLINT'])})",
            lambda: f"extract({self._rng.choice(['YEAR', 'MONTH', 'DAY'])} FROM {self.day(below)})",
            lambda: f"{self._rng.choice(['year', 'month', 'day'])}({self.day(below)})",
            lambda: f"length({self.text(below)})",
        ]
        return self._rng.choice(forms)()

    def condition(self, depth: int) -> str:
        """Return a condition."""
        below = depth - 1
        if depth <= 0 or self._chance(0.1):
            return self._rng.choice(["flag", "(NOT flag)", "(i > 1)", "(text = 'a')", "TRUE", "(money IS NULL)"])
        compared = self._rng.choice(["=", "<>", "<", "<=", ">", ">=", "<=>"])
        forms: list[Callable[[], str]] = [
            lambda: f"({self.number(below)} {compared} {self.number(below)})",
            lambda: f"({self.text(below)} {compared} {self.text(below)})",
            lambda: f"(d {compared} {self._rng.choice(['d', 'e'])})",
            lambda: f"(at {compared} until)",
            lambda: f"(coalesce(plain, TIMESTAMP_NTZ '2024-01-03 04:05:06') {compared} plain)",
            lambda: f"({self.day(below)} {compared} {self.day(below)})",
            lambda: f"({self.day(below)} {compared} '1995-01-31')",
            lambda: f"({self.condition(below)} {self._rng.choice(['AND', 'OR'])} {self.condition(below)})",
            lambda: f"(NOT {self.condition(below)})",
            lambda: f"({self.value(below)} IS {self._not()}NULL)",
            lambda: f"({self.condition(below)} IS {self._not()}{self._rng.choice(['TRUE', 'FALSE'])})",
            lambda: f"({self.number(below)} {self._not()}IN (1, 2, i, NULL))",
            lambda: f"({self.text(below)} {self._not()}IN ('a', 'b', word))",
            lambda: f"({self.number(below)} {self._not()}BETWEEN {self.number(0)} AND {self.number(0)})",
            lambda: f"({self.text(below)} {self._not()}LIKE '{self._rng.choice(_PATTERNS)}')",
        ]
        return self._rng.choice(forms)()

    def text(self, depth: int) -> str:
        """Return an expression of texts."""
        below = depth - 1
        if depth <= 0 or self._chance(0.4):
            return self._rng.choice(["text", "text", "word", "'a'", "'x''y'", "''"])
        forms: list[Callable[[], str]] = [
            lambda: f"substring({self.text(below)}, {self._rng.randint(1, 4)}, {self._rng.randint(1, 5)})",
            lambda: f"({self.text(below)} || {self.text(below)})",
            lambda: f"concat({self.text(below)}, {self.text(below)})",
            lambda: f"split_part({self.text(below)}, '/', {self._rng.randint(1, 3)})",
            lambda: f"replace({self.text(below)}, 'a', '{self._rng.choice(['', 'bb'])}')",
            lambda: f"{self._rng.choice(['lower', 'upper'])}(word)",
            lambda: f"CASE WHEN {self.condition(below)} THEN {self.text(below)} END",
            lambda: f"coalesce({self.text(below)}, {self.text(below)})",
            lambda: f"CAST({self._rng.choice(_WHOLE)} AS STRING)",
        ]
        return self._rng.choice(forms)()

    def day(self, depth: int) -> str:
        """Return an expression of dates."""
        if depth <= 0 or self._chance(0.5):
            return self._rng.choice(["day", "day", "DATE '1995-01-31'", "DATE '2024-02-29'"])
        unit = self._rng.choice(["DAY", "MONTH", "YEAR"])
        return f"({self.day(depth - 1)} {self._rng.choice('+-')} INTERVAL '{self._rng.randint(0, 40)}' {unit})"

    def aggregate(self) -> str:
        """Return an aggregate."""
        of = self._rng.choice
        forms: list[Callable[[], str]] = [
            lambda: "count(*)",
            lambda: f"count({self.value(1)})",
            lambda: f"count(DISTINCT {of(['i', 'text', 'day', 'money', 'd', 'at', 'plain'])})",
            lambda: f"count_if({self.condition(1)})",
            lambda: f"sum({of([*_NUMBERS, 'money * rate', 'money * (1 - rate)', 'CASE WHEN flag THEN j ELSE 0 END'])})",
            lambda: f"sum(DISTINCT {of(['j', 'rate'])})",
            lambda: f"avg({of(['tiny', 'small', 'j', 'money', 'rate', 'whole', 'big'])})",
            lambda: f"{of(['min', 'max'])}({of([*_NUMBERS, 'text', 'day', 'flag'])})",
            lambda: f"{of(['min', 'max'])}({of('de')}) {of(['> 0', '<= 1.5', 'IS NULL', '= 0'])}",
            lambda: f"sum(money) / {of(['count(*)', 'sum(whole)', 'sum(money)', '7.0'])}",
            lambda: "100.00 * sum(CASE WHEN flag THEN money ELSE 0 END) / sum(money)",
            lambda: f"0.2 * avg({of(['money', 'rate'])})",
            lambda: f"{of(['bool_and', 'bool_or'])}(flag)",
            lambda: f"sum({of(['j', 'money'])}) FILTER (WHERE {self.condition(1)})",
        ]
        return of(forms)()

    def _not(self) -> str:
        return self._rng.choice(["", "NOT "])

    def _whole(self, depth: int) -> str:
        if depth <= 0 or self._chance(0.5):
            return self._rng.choice(_WHOLE)
        return f"({self._whole(depth - 1)} {self._rng.choice('+-*')} {self._rng.choice(['1', '2', 'j'])})"

    def _divisor(self) -> str:
        return self._rng.choice(["j", "3", "7.0", "0.25", "rate", "money", "whole", "100"])

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability
