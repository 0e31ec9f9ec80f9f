"""What the records of a topic say of a table, one by one: the rows that the table of a sync may have.

A record replaces the row of its key. A column that the row does not have keeps its stored value, and so does a long
value that the record leaves out. That is why a table is not always what the database shows now: a dropped table, an
older name of a column and a default of a new one leave no record. Independent of the product.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from typing import Any

from tests.cdc.living_table import Key, Row

__all__ = ["DifferenceError", "Event", "ExpectedRows", "Following", "same", "spelled_key"]

Shape = Mapping[str, str]
"""Type of each column, as this project spells it."""

_WIDENING = (
    ("SMALLINT", "INT", "BIGINT"),
    ("FLOAT", "DOUBLE"),
    ("DECIMAL(10, 2)", "DECIMAL(38, 10)"),
    ("TIMESTAMP(3)", "TIMESTAMP(6)"),
)
_ENCODED = ("DECIMAL", "TIMESTAMP", "DOUBLE")
"""Types that a log writes otherwise once they are wider."""

_TEXTS = ("STRING", "VARCHAR(20)")
_EXACT = Context(prec=80)


class DifferenceError(AssertionError):
    """A table is not what its records say."""


@dataclass(frozen=True, slots=True)
class Following:
    """How the sync of a game treats its sources."""

    schema_change: str = "evolve"
    on_reject: str = "fail"
    on_truncate: str = "apply"
    is_logged: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change of one row: ``old`` has become ``new``, each None if there is none.

    ``names`` are the columns of the key, and ``shape`` all columns, as the table in the database has them at that time;
    ``unsent`` are the long values that the record leaves out. A row that moves to another key is two changes.
    """

    names: tuple[str, ...]
    shape: Shape
    old: Row | None
    new: Row | None
    unsent: frozenset[str] = frozenset()


@dataclass
class ExpectedRows:
    """The rows of a table, which its first row begins: that has its columns and its ``key``, none without one.

    Each key has the rows that its table may have; the last is that of all records, the others lack some that may have
    been rejected. ``must_stop``: what an error says that the table has to stop at, ``may_stop``: it may stop.
    ``sent``: the types that records tell instead of those of the database.
    """

    following: Following
    sent: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    is_begun: bool = False
    must_stop: str | None = None
    may_stop: bool = False
    may_reject: bool = False
    must_reject: int = 0
    _rows: dict[Key, list[Row | None]] = field(default_factory=dict)
    _bag: Counter[frozenset[tuple[str, str]]] = field(default_factory=Counter)
    _steps: list[_Step] = field(default_factory=list)
    _early: list[Shape] = field(default_factory=list)
    """What TRUNCATEs before the first row said of the columns."""
    _perhaps: set[str] = field(default_factory=set)
    """Columns that only records have which may have been rejected."""

    # What the records say.

    def apply(self, event: Event) -> None:
        """Apply a change."""
        event = replace(event, shape=self._told(event.shape))
        if not self.is_begun:
            self.is_begun, self.key, self.columns = True, event.names, {**event.shape}
            for shape in self._early:
                self._truncate(shape)
        if self.must_stop is None and {*event.names} != {*self.key}:
            self.must_stop = "key"  # it may distinguish other rows now
        before = {*self.columns}
        is_doubtful = self.must_stop is None and self._is_doubtful(event.shape)
        if self.must_stop is None:
            apply = self._apply_to_key if self.key else self._apply_to_bag
            if apply(event, is_doubtful=is_doubtful):
                self._perhaps -= event.shape.keys()
            else:
                self._perhaps |= self.columns.keys() - before

    def truncate(self, shape: Shape) -> None:
        """Apply a TRUNCATE, whose record has no row, but the columns of the table."""
        if self.is_begun:
            self._truncate(self._told(shape))
        else:
            self._early.append(self._told(shape))

    def _told(self, shape: Shape) -> dict[str, str]:
        return {name: self.sent.get(of, of) for name, of in shape.items()}

    def _truncate(self, shape: Shape) -> None:
        if self.must_stop is None:
            self._is_doubtful(shape)
        if self.must_stop is not None:
            return
        if self.following.on_truncate == "fail":
            self.must_stop = "truncated"
        elif self.following.on_truncate == "apply":
            self._rows.clear()
            self._bag.clear()
            self._steps.append(_Step())

    def _apply_to_key(self, event: Event, *, is_doubtful: bool) -> bool:
        """Apply a change of the row of its key; return whether its record is surely taken."""
        row = event.new if event.new is not None else event.old
        key = spelled_key(row or {}, self.key)
        before = self._rows.get(key, [None])
        unsent = event.unsent & self.columns.keys()
        if unsent and all(each is None or any(each.get(name) is None for name in unsent) for each in before):
            # A value that is left out is long, and the table has none.
            self._refuse("leaves out the value")
            return False
        # After a record that may have been rejected, nobody knows the values that others leave out.
        is_doubtful = is_doubtful or (bool(unsent) and len(before) > 1)
        if is_doubtful:
            self._may_refuse()
        after = [_applied(event, each) for each in before]
        self._rows[key] = _distinct([*before, *after] if is_doubtful else after)
        self._steps.append(_Step(key, after[-1]))
        return not is_doubtful

    def _apply_to_bag(self, event: Event, *, is_doubtful: bool) -> bool:
        """Apply a change of a row without a key; return whether its record is surely taken."""
        old = None if event.old is None else _values_of(self._known(event.old))
        if old is not None and not self.columns.keys() <= event.shape.keys():
            # The record does not tell all of the row that it takes back.
            self._refuse("row")
            return False
        # A row that came while the table had another name, and so another topic, is taken back although it is not here.
        if is_doubtful:
            self._may_refuse()
        if old is not None:
            self._bag[old] -= 1
        if event.new is not None:
            self._bag[_values_of(self._known(event.new))] += 1
        return not is_doubtful

    def _known(self, row: Row) -> Row:
        """Return the columns of a row that the table has: it may ignore new ones."""
        return {name: value for name, value in row.items() if name in self.columns}

    def _is_doubtful(self, shape: Shape) -> bool:
        """Follow the columns of a change; return whether the table may not take a value of it."""
        is_doubtful, could_go_on = False, self.must_stop is None
        for name, new in shape.items():
            held = self.columns.get(name)
            if held is None or _is_wider(held, new):
                is_doubtful |= self._is_unfollowed(name, new)
            elif not (held == new or _is_wider(new, held) or {held, new} <= {*_TEXTS}):
                is_doubtful = True
        if is_doubtful and could_go_on and self.must_stop is not None:
            # Records that may be refused for another column are not asked for new ones.
            self.may_stop = True
            if self.following.on_reject != "fail":
                self.must_stop = None
        return is_doubtful

    def _is_unfollowed(self, name: str, new: str) -> bool:
        """Follow a column that is new or wider now; return whether the table may not take its values."""
        is_new = name not in self.columns
        following = self.following.schema_change
        # A table without a key distinguishes rows by all columns, and a log has values of the type: so these stay.
        is_fixed = not self.key or (not is_new and self.following.is_logged and new.startswith(_ENCODED))
        if following == "fail" or (following == "evolve" and is_fixed):
            self.must_stop = "has a new column" if is_new else "writes column"
        elif following == "evolve":
            self.columns[name] = new
        return following == "ignore" and not is_new

    def _refuse(self, reason: str) -> None:
        self.may_reject = True
        self.must_reject += 1
        if self.following.on_reject == "fail":
            self.must_stop = reason

    def _may_refuse(self) -> None:
        self.may_reject = True
        if self.following.on_reject == "fail":
            self.may_stop = True

    # What the table has.

    def check(self, held: Sequence[Row], *, is_whole: bool) -> None:
        """Compare with the rows of a table that has read all records; ``is_whole``: it has rejected none."""
        names = {*held[0]} if held else {*self.columns}
        if self.following.schema_change == "evolve" and held and names | self._perhaps != {*self.columns}:
            raise DifferenceError(
                f"columns {sorted(names)} instead of {sorted(self.columns)}, perhaps without {sorted(self._perhaps)}"
            )
        if not self.key:
            self._check_bag(held)
            return
        mine = {spelled_key(row, self.key): row for row in held}
        for key in {**self._rows, **mine}:
            possible = self._rows.get(key, [None])
            if is_whole:
                possible = possible[-1:]
            if not any(_is_row(mine.get(key), each) for each in possible):
                raise DifferenceError(f"key {key} has {_short(mine.get(key))} instead of {[*map(_short, possible)]}")

    def check_stopped(self, held: Sequence[Row]) -> None:
        """Compare with the rows of a table that has stopped somewhere: it has all changes up to that place."""
        if not self.key or (self.may_reject and self.following.on_reject != "fail"):
            return
        mine = {spelled_key(row, self.key): row for row in held}
        differing, now = {*mine}, dict[Key, Row | None]()
        for step in (_Step(), *self._steps):
            if step.key is None:
                differing, now = {*mine}, {}
            else:
                now[step.key] = step.row
                (differing.discard if _is_row(mine.get(step.key), step.row) else differing.add)(step.key)
            if not differing:
                return
        some = [(key, _short(mine.get(key)), _short(now.get(key))) for key in sorted(differing, key=repr)[:3]]
        raise DifferenceError(f"it stopped with rows of no moment: {some}")

    def _check_bag(self, held: Sequence[Row]) -> None:
        if self.may_reject:
            return
        mine = Counter(_values_of(row) for row in held)
        if mine != +self._bag:
            raise DifferenceError(f"rows {[*(mine - self._bag)][:3]} instead of {[*(self._bag - mine)][:3]}")


@dataclass(frozen=True, slots=True)
class _Step:
    """The row of a key after a change; without a key, the end of all rows."""

    key: Key | None = None
    row: Row | None = None


def spelled_key(row: Mapping[str, Any], names: Iterable[str]) -> Key:
    """Return the key of a row as it is whatever a mode makes of decimals."""
    return tuple(str(value) if isinstance(value := row[name], Decimal) else value for name in names)


def _applied(event: Event, before: Row | None) -> Row | None:
    if event.new is None:
        return None
    sent = {name: value for name, value in event.new.items() if name not in event.unsent}
    return {**(before or {}), **sent}


def _distinct(rows: Iterable[Row | None]) -> list[Row | None]:
    """Return the rows without those that come again later."""
    found: dict[str, Row | None] = {}
    for each in rows:
        text = repr(None if each is None else sorted(each.items(), key=lambda item: item[0]))
        found.pop(text, None)
        found[text] = each
    return [*found.values()]


def _values_of(row: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return a row of a table without a key so that a new column without a value changes nothing."""
    return frozenset((name, _spelled(value)) for name, value in row.items() if value is not None)


def _spelled(value: Any) -> str:
    """Spell a value; a number as its text, as some modes write it."""
    match value:
        case bool():
            return repr(value)
        case Decimal() | int():
            return str(Decimal(value).normalize(_EXACT))
        case str():
            number = _number(value)
            return repr(value) if number is None or not number.is_finite() else str(number.normalize(_EXACT))
    return repr(value)


def _is_row(mine: Row | None, theirs: Row | None) -> bool:
    """Whether the table's row is that one, as far as the table has its columns."""
    if mine is None or theirs is None:
        return mine is theirs
    return all(same(value, theirs.get(name)) for name, value in mine.items())


def _is_wider(held: str, new: str) -> bool:
    return any(held in types and new in types and types.index(new) > types.index(held) for types in _WIDENING)


def same(ours: Any, theirs: Any) -> bool:  # noqa: PLR0911  one per pair of types
    """Whether a value of the table is that of the database, which may have been of another type once."""
    if ours == theirs:
        return True
    match ours, theirs:
        case ("float", str() as text), Decimal() | int():
            return float(text) == float(theirs)
        case ("float", str() as mine), ("float", str() as other):
            return float(mine) in (float(other), _single(float(other)))
        case Decimal() | int(), ("float", str() as text):
            return float(ours) == float(text)
        case (str(), Decimal() | int()) | (Decimal() | int(), str()):
            return _number(str(ours)) == _number(str(theirs))
        case str(), ("float", str() as text):
            return _number(ours) == _number(text)
        case dt.datetime(), dt.datetime():
            return ours.replace(tzinfo=None) == theirs.replace(tzinfo=None)
        case str(), dt.date() | dt.time():
            return _is_text_of(ours, theirs)
        case tuple(), tuple():
            return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return False


def _is_text_of(text: str, moment: dt.date | dt.time) -> bool:
    """Whether a text is that of a date or a time, as some modes write them; those without a zone end with a Z, too."""
    try:
        written = type(moment).fromisoformat(text)
    except ValueError:
        try:
            written = type(moment).fromisoformat(text.removesuffix("Z"))
        except ValueError:
            return False
    if isinstance(written, dt.datetime | dt.time) and isinstance(moment, dt.datetime | dt.time):
        return written.replace(tzinfo=None) == moment.replace(tzinfo=None)
    return written == moment


def _single(value: float) -> float:
    """Return the nearest number of single precision, as a FLOAT column has it."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return value


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text)
    except ArithmeticError:
        return None


def _short(row: Row | None) -> str:
    if row is None:
        return "no row"
    return ", ".join(f"{name}={_abridged(value)}" for name, value in row.items())


def _abridged(value: Any) -> str:
    return text if len(text := repr(value)) < 60 else f"{text[:40]}... ({len(text)})"
