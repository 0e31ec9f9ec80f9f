"""Random rows, and random histories of a source: the changes of an application, in any order.

The histories track the table's content to generate the hard cases: several changes of a key in one commit, a deleted
row that is inserted again, two rows that exchange a value, a key or a partition that changes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from random import Random

from tests.differential.case import Append, Change, Compact, Drain, MoveDimension, Overwrite, Row, Source, Step, Value

CATEGORIES = 5
_PARTITIONS = ("x", "y", "z")
_WORDS = ("ant", "bee", "Ant", "cow", "", "a%b", "é")
_DAY = dt.date(2024, 2, 28)
_MOMENT = dt.datetime(2024, 2, 28, 23, 59, 59, 999_999)  # noqa: DTZ001  the column has no time zone
_KEYS = 8
_NULL = 0.15


def random_value(rng: Random, name: str, kind: str) -> Value:
    """Return a value of a column other than the key, the partition and ``u``."""
    if name == "cat":
        return None if rng.random() < _NULL else rng.randrange(CATEGORIES + 1)
    if rng.random() < _NULL:
        return None
    if kind == "BIGINT":
        return rng.randrange(-3, 12)
    if kind == "STRING":
        return rng.choice(_WORDS)
    return random_of_type(rng, kind)


def random_of_type(rng: Random, kind: str) -> Value:
    """Return a value of one of the rarer types."""
    if kind == "BOOLEAN":
        return rng.random() < 0.5
    if kind == "DATE":
        return _DAY + dt.timedelta(days=rng.randrange(4))
    if kind == "TIMESTAMP(6)":
        return _MOMENT + dt.timedelta(microseconds=rng.randrange(3))
    assert kind == "DECIMAL(8, 2)"
    return Decimal(rng.randrange(-300, 300)) / 100


def key_value(number: int, kind: str) -> Value:
    """Return the key value of row ``number``."""
    if kind == "STRING":
        return f"k{number}"
    if kind == "DATE":
        return _DAY + dt.timedelta(days=number)
    return number - 2


def random_dimension(rng: Random) -> tuple[Row, ...]:
    """Return rows of the dimension; some categories are missing."""
    cats = [cat for cat in range(CATEGORIES) if rng.random() < 0.75]
    return tuple((cat, rng.choice(("ant", "bee", "boa", None)), rng.choice((None, *range(8)))) for cat in cats)


class History:
    """Generates the steps of one case; ``rows`` is the table's content, by the number of the row's key."""

    def __init__(self, rng: Random, source: Source) -> None:
        self._rng = rng
        self._source = source
        self.rows: dict[int, dict[str, Value]] = {}
        self._kept: list[dict[str, Value]] = []
        self._next_unique = 100

    def steps(self, *, drains_max: int, changes_max: int) -> Iterator[Step]:
        """Yield commits with drains in between; the last step is a drain."""
        rng = self._rng
        for number in range(rng.randint(1, drains_max)):
            if number and rng.random() < 0.15:
                yield MoveDimension(rows=random_dimension(rng))
            for _ in range(rng.choice((1, 1, 2, 3))):
                yield self._commit(changes_max)
                if rng.random() < 0.15:
                    yield Compact(full=rng.random() < 0.5)
            yield Drain(rows_max=rng.choice((None, None, None, 2, 5, 8)))

    def _commit(self, changes_max: int) -> Step:
        rng = self._rng
        chance = rng.random()
        if chance < 0.05:
            return Append(changes=())
        if chance < 0.15 and self._source.key:
            return self._overwrite()
        count = rng.randint(1, changes_max)
        changes: list[Change] = []
        while len(changes) < count:
            changes += self._keyed() if self._source.key else self._keyless()
        return Append(changes=tuple(changes))

    def _overwrite(self) -> Overwrite:
        rng, partition = self._rng, self._source.partition
        value = rng.choice(_PARTITIONS) if partition and rng.random() < 0.5 else None
        gone = [number for number, row in self.rows.items() if value is None or row[str(partition)] == value]
        kept = [number for number in gone if rng.random() < 0.5]
        for number in gone:
            if number not in kept:
                del self.rows[number]
            elif rng.random() < 0.6:
                self._redraw(self.rows[number])
        fresh = [number for number in range(_KEYS) if number not in self.rows and rng.random() < 0.2]
        for number in fresh:
            self.rows[number] = self._new(number)
            if value is not None:
                self.rows[number][str(partition)] = value
        return Overwrite(rows=tuple(self._row(self.rows[number]) for number in (*kept, *fresh)), partition=value)

    # --- a table with a key -------------------------------------------------------------------------------------

    def _keyed(self) -> Iterator[Change]:
        rng = self._rng
        number = rng.randrange(_KEYS)
        chance = rng.random()
        if number not in self.rows:
            if chance < 0.15:
                yield self._deletion(self._new(number))
                return
            self.rows[number] = self._new(number)
            yield "+I", self._row(self.rows[number])
            return
        row = self.rows[number]
        if chance < 0.45:
            self._redraw(row)
            yield rng.choice(("+U", "+U", "+I")), self._row(row)
        elif chance < 0.6:
            yield self._deletion(row)
            del self.rows[number]
            if rng.random() < 0.4:
                self.rows[number] = self._new(number)
                yield "+I", self._row(self.rows[number])
        elif chance < 0.75:
            yield from self._exchange(row)
        elif chance < 0.85 and self._source.partition:
            yield self._deletion(row)
            row[self._source.partition] = rng.choice(_PARTITIONS)
            yield "+I", self._row(row)
        else:
            yield from self._move_key(number)

    def _exchange(self, row: dict[str, Value]) -> Iterator[Change]:
        """Exchange ``u`` between two rows, or take it over from a row that is deleted or gets another value."""
        rng = self._rng
        others = [each for each in self.rows.values() if each is not row]
        if not others:
            return
        other = rng.choice(others)
        first, second = (row, other) if rng.random() < 0.5 else (other, row)
        if rng.random() < 0.6:
            first["u"], second["u"] = second["u"], first["u"]
            yield "+U", self._row(first)
            yield "+U", self._row(second)
            return
        taken = first["u"]
        first["u"] = self._unique()
        changes = [("+U", self._row(first))]
        second["u"] = taken
        changes.append(("+U", self._row(second)))
        rng.shuffle(changes)
        yield from changes

    def _move_key(self, number: int) -> Iterator[Change]:
        """Move the row to another key."""
        free = [each for each in range(_KEYS) if each not in self.rows]
        if not free:
            return
        row = self.rows.pop(number)
        changes = [self._deletion(row)]
        target = self._rng.choice(free)
        row = row | self._key_of(target)
        self.rows[target] = row
        changes.append(("+I", self._row(row)))
        if self._rng.random() < 0.3:
            changes.reverse()
        yield from changes

    def _deletion(self, row: dict[str, Value]) -> Change:
        keys = self._source.primary_key
        whole = self._rng.random() < 0.6
        return "-D", tuple(row[name] if whole or name in keys else None for name in self._source.names)

    # --- a table without a key ----------------------------------------------------------------------------------

    def _keyless(self) -> Iterator[Change]:
        rng = self._rng
        if self._source.is_append_only or not self._kept or rng.random() < 0.5:
            again = self._kept and rng.random() < 0.2
            row = dict(rng.choice(self._kept)) if again else self._new(rng.randrange(_KEYS))
            self._kept.append(row)
            yield "+I", self._row(row)
            return
        row = self._kept.pop(rng.randrange(len(self._kept)))
        yield rng.choice(("-D", "-U")), self._row(row)
        if rng.random() < 0.5:
            self._redraw(row)
            self._kept.append(row)
            yield rng.choice(("+U", "+I")), self._row(row)

    # --- rows ---------------------------------------------------------------------------------------------------

    def _new(self, number: int) -> dict[str, Value]:
        rng, source = self._rng, self._source
        key = self._key_of(number)
        row = {name: key[name] if name in key else random_value(rng, name, kind) for name, kind in source.columns}
        if source.partition:
            row[source.partition] = rng.choice(_PARTITIONS)
        row["u"] = self._unique()
        return row

    def _key_of(self, number: int) -> dict[str, Value]:
        kinds = dict(self._source.columns)
        names = self._source.key or ("k",)
        if len(names) == 1:
            return {names[0]: key_value(number, kinds[names[0]])}
        return {names[0]: key_value(number // 3, kinds[names[0]]), names[1]: key_value(number % 3, kinds[names[1]])}

    def _redraw(self, row: dict[str, Value]) -> None:
        fixed = {"u", "k", self._source.partition, *self._source.key}
        names = [(name, kind) for name, kind in self._source.columns if name not in fixed]
        for name, kind in self._rng.sample(names, self._rng.randint(1, min(3, len(names)))):
            row[name] = random_value(self._rng, name, kind)
        if self._rng.random() < 0.1:
            row["u"] = self._unique()

    def _unique(self) -> int:
        self._next_unique += 1
        return self._next_unique

    def _row(self, row: dict[str, Value]) -> Row:
        return tuple(row[name] for name in self._source.names)
