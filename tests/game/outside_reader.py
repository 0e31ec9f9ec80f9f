"""A reader of the log that shares no code with the table: plain JSON, applied by key or as a bag of rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.game.followers import ContradictionError
from tests.game.model import Model

NAMES = ("p", "k", "s", "n", "x", "t")
"""Columns whose names never change; a record has the names of the time when it was written."""

Row: TypeAlias = tuple[Any, ...]


class RawLog(Protocol):
    """The records of the topic that its consumers see, bucket by bucket, each once."""

    def records(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the keys and values of the records that were committed since the last call."""
        ...


@dataclass
class OutsideReader:
    """Began with a copy of the table. ``is_complete``: each pre-image is the row that the log had last."""

    log: RawLog
    key: tuple[str, ...]
    is_complete: bool
    rows: dict[Row, Row] = field(default_factory=dict)
    bag: Counter[Row] = field(default_factory=Counter)

    def begin(self, model: Model) -> None:
        """Take over the model's rows, as of the end of the log."""
        for _ in self.log.records():
            pass
        self.rows, self.bag = {}, Counter()
        for row in _of_model(model):
            self._insert(row)

    def read_on(self) -> None:
        """Apply what is new. Raises ``ContradictionError``."""
        for key, value in self.log.records():
            if value is not None:
                self._apply(key, json.loads(value))

    def found(self) -> list[str]:
        return sorted(map(repr, self.rows.values() if self.key else self.bag.elements()))

    def _apply(self, key: bytes, change: dict[str, Any]) -> None:
        before, after, op = change["before"], change["after"], change["op"]
        # Without a key, the two halves of an update may be in two partitions.
        has_before = self.is_complete if self.key else before is not None
        sides = {"c": (False, True), "d": (True, False), "u": (has_before, True)}[op]
        if sides != (before is not None, after is not None):
            message = f"a record of op {op} has before={before}, after={after}"
            raise ContradictionError(message)
        for row in (before, after):
            if self.key and row is not None and json.loads(key) != {name: row[name] for name in self.key}:
                message = f"key {key!r} of {change}"
                raise ContradictionError(message)
        if before is not None:
            self._remove(_plain(before))
        if after is not None:
            self._insert(_plain(after), is_new=op == "c" and self.is_complete)

    def _insert(self, row: Row, *, is_new: bool = False) -> None:
        if not self.key:
            self.bag[row] += 1
            return
        if is_new and self._key_of(row) in self.rows:
            message = f"{row} is inserted, but there is {self.rows[self._key_of(row)]}"
            raise ContradictionError(message)
        self.rows[self._key_of(row)] = row

    def _remove(self, row: Row) -> None:
        if not self.key:
            if not self.bag[row]:
                message = f"{row} is removed, but there is none"
                raise ContradictionError(message)
            self.bag[row] -= 1
            return
        there = self.rows.pop(self._key_of(row), None)
        if self.is_complete and there != row:
            message = f"{row} is removed, but there is {there}"
            raise ContradictionError(message)

    def _key_of(self, row: Row) -> Row:
        return tuple(value for name, value in zip(NAMES, row, strict=True) if name in self.key)


def expected(model: Model) -> list[str]:
    return sorted(map(repr, _of_model(model)))


def _of_model(model: Model) -> list[Row]:
    return [tuple(row[model.columns[name]] for name in NAMES) for row in model.rows()]


def _plain(row: dict[str, Any]) -> Row:
    return tuple(row[name] for name in NAMES)
