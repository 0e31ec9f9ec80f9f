"""What the games with a real PostgreSQL share: a schema that Debezium follows, and random changes of its rows.

Rows are inserted, changed, moved to other keys and deleted, by transactions that are long or short, of which one may
stay open while others commit.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import psycopg

from tests.cdc.column_kinds import KINDS
from tests.cdc.debezium_stack import DebeziumStack, FollowedSchema
from tests.cdc.expected_rows import Event
from tests.cdc.living_table import Key, LivingTable, Row

__all__ = ["Database", "FollowedGame", "Move", "TableEvent", "shape_of"]

Database: TypeAlias = psycopg.Connection[Any]
Move: TypeAlias = tuple[float, Callable[[Database], object]]
"""How often a move is made, and the move."""

TableEvent: TypeAlias = tuple[str, Event]
"""A table's name and a change of its rows."""

SIZES = (1, 1, 2, 5, 8)
"""Numbers of changes in a transaction."""


class FollowedGame(ABC):
    """A schema of a database, named after the seed and the test. ``seen`` counts the moves."""

    rows_max = 20
    moves_whole = False
    """Whether a row that moves to another key gets new long values, which its record would leave out otherwise."""

    def __init__(
        self, seed: int, stack: DebeziumStack, name: str, mode: str, options: Mapping[str, str] | None = None
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - reproducible
        self.seen: Counter[str] = Counter()
        self.stack = stack
        self.name = name.replace("-", "_").lower()[:60]
        self.schema = FollowedSchema(stack, self.name, mode, options)
        self.tables: list[LivingTable] = []
        lost = {each.removeprefix("c_") for each in self.schema.mode.lost}
        self.kinds = [each for each in KINDS if each not in lost]
        self._others: Database | None = None
        self._pending: list[TableEvent] = []
        self._story: list[str] = []

    def play(self, moves: int) -> None:
        """Play, and check at the end; whatever happens, leave nothing on the servers."""
        with self.stack.database() as database:
            self.schema.create(database)
            try:
                self.begin(database)
                self.schema.follow()
                # It can not begin as long as a transaction is open that is older than it.
                self.schema.wait_until_sent(database)
                for _ in range(moves):
                    self._move(database)
                self.end_the_other(database)
                self.check(database)
            except Exception as error:
                error.add_note("\n".join(self._story[-200:]))
                raise
            finally:
                if self._others is not None:
                    self._others.close()
                self.schema.end(database)

    @abstractmethod
    def begin(self, database: Database) -> None:
        """Create the first tables."""

    @abstractmethod
    def moves(self) -> Mapping[str, Move]:
        """Return what may happen, by name."""

    @abstractmethod
    def check(self, database: Database) -> None:
        """Raise ``DifferenceError`` unless everything is as it must be."""

    @abstractmethod
    def record(self, events: Sequence[TableEvent]) -> None:
        """Remember committed changes."""

    @abstractmethod
    def outcome(self) -> Mapping[str, object]:
        """Return what was compared, and why tables have stopped."""

    def say(self, what: str) -> None:
        """Add a line to the story that an error shows."""
        self._story.append(what)

    def restart_debezium(self, *, may_kill: bool) -> None:
        """Restart it as its operator does, or as a crash."""
        connect = self.stack.connect
        if may_kill and self.chance.random() < 0.5:
            connect.kill()
        else:
            connect.stop()
        connect.start()

    def _move(self, database: Database) -> None:
        weights = self.moves()
        (name,) = self.chance.choices(list(weights), [weight for weight, _ in weights.values()])
        self.seen[name] += 1
        weights[name][1](database)

    # What happens to rows.

    def one_transaction(self, database: Database) -> None:
        """Change some rows of some tables."""
        events: list[TableEvent] = []
        with database.transaction():
            for _ in range(self.chance.choice(SIZES)):
                if self.tables:
                    events += self._change(database, self.chance.choice(self.tables))
        self.record(events)

    def change_in_the_other(self, database: Database) -> None:
        """Change rows in a transaction that stays open, and keep the other one away from them."""
        if self._others is None:
            self._others = self.stack.database()
            self._others.autocommit = False
        keyed = [table for table in self.tables if table.key]
        if not keyed:
            return
        table = self.chance.choice(keyed)
        rows = table.free_rows(database)
        mine = self.chance.sample(rows, min(len(rows), 2))
        for row in mine:
            table.locked.add(table.key_of(row))
            self._pending += self._update(self._others, table, row)
        key = table.new_key(self.chance, [table.key_of(row) for row in rows])
        if key is not None:
            table.locked.add(key)
            self._pending += self.insert(self._others, table, key)

    def end_the_other(self, _: Database) -> None:
        """Commit the transaction that is open, or roll it back."""
        if self._others is not None:
            if self.chance.random() < 0.2:
                self._others.rollback()
            else:
                self._others.commit()
                self.record(self._pending)
        self._pending = []
        for table in self.tables:
            table.locked.clear()

    def change_identity(self, database: Database) -> None:
        """Change what is logged of a table's rows."""
        keyed = [table for table in self.tables if table.key]
        if keyed:
            self.end_the_other(database)
            table = self.chance.choice(keyed)
            table.set_identity(database, is_full=not table.is_full)

    def insert(self, database: Database, table: LivingTable, key: Key | None = None) -> list[TableEvent]:
        """Insert a row with a key that no other has."""
        if table.key:
            taken = [table.key_of(each) for each in table.rows(database)]
            key = key or table.new_key(self.chance, taken)
            if key is None:
                return []
        # A column that has a default may be left out.
        names = [each for each in table.others if each in table.required or self.chance.random() < 0.8]
        values = {**dict(zip(table.key, key or (), strict=True)), **table.values(self.chance, names)}
        if not values:
            return []
        return [_event(table, None, table.insert(database, values))]

    def _change(self, database: Database, table: LivingTable) -> list[TableEvent]:
        rows = table.free_rows(database)
        kind = self.chance.choices(("insert", "update", "move", "delete"), (5, 6, 1 if table.key else 0, 2))[0]
        if kind == "insert" or not rows:
            return self.insert(database, table) if len(rows) < self.rows_max else []
        row = self.chance.choice(rows)
        if kind == "update":
            return self._update(database, table, row)
        if kind == "move":
            return self._move_row(database, table, row)
        table.delete(database, row)
        return [_event(table, row, None)]

    def _update(self, database: Database, table: LivingTable, row: Row) -> list[TableEvent]:
        if not table.others:
            return []
        names = self.chance.sample([*table.others], self.chance.randint(1, len(table.others)))
        new = table.update(database, row, table.values(self.chance, names))
        return [_event(table, row, new, table.unsent(row, names))]

    def _move_row(self, database: Database, table: LivingTable, row: Row) -> list[TableEvent]:
        key = table.new_key(self.chance, [table.key_of(each) for each in table.rows(database)])
        if key is None:
            return []
        of_all = self.chance.random() < 0.7
        names = [name for name, kind in table.others.items() if of_all or (self.moves_whole and kind.is_long)]
        values = table.values(self.chance, names)
        new = table.update(database, row, {**values, **dict(zip(table.key, key, strict=True))})
        return [_event(table, row, None), _event(table, None, new, table.unsent(row, names))]


def shape_of(table: LivingTable) -> dict[str, str]:
    """Return the columns of a table with the types that they have here."""
    return {name: kind.ours for name, kind in table.columns.items()}


def _event(table: LivingTable, old: Row | None, new: Row | None, unsent: Iterable[str] = ()) -> TableEvent:
    event = Event(
        names=tuple(table.key),
        shape=shape_of(table),
        old=None if old is None else {name: value for name, value in old.items() if name != "ctid"},
        new=new,
        unsent=frozenset(unsent),
    )
    return table.name, event
