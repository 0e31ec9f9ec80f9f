"""A random game with a real database, a real Debezium and ``ingest``: after each pause the table equals the database.

Rows are inserted, changed, moved to other keys and deleted, in transactions that are long or short; long values are not
sent unless they change; tables are truncated, and what is logged of a row before changes. ``ingest`` crashes at any
operation on its storage, Debezium and the broker are restarted or killed, topics are compacted. A table may stop only
for a reason that the game knows, and that its own moves have caused.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from storage_lib import DynamicTable, ingest, open_catalog
from storage_lib.errors import RetryableError, StorageError
from tests.cdc.column_kinds import KINDS, plain
from tests.cdc.debezium_stack import DEADLINE_SECONDS, DebeziumStack, FollowedSchema
from tests.cdc.drawn_tables import DrawnTable, Key, drawn_table
from tests.support.broker_restart import kill_and_restart
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in

__all__ = ["ChangeGame", "Rules"]

ROWS_MAX = 30
ROWS_PER_COMMIT = (1, 2, 7, 1_000_000)
CRASH_AT_MAX = 120
LEFT_OUT = re.compile("leaves out the value")
COMPACTED = {
    "topic.creation.default.cleanup.policy": "compact",
    "topic.creation.default.segment.ms": "200",
    "topic.creation.default.min.cleanable.dirty.ratio": "0.001",
    "topic.creation.default.max.compaction.lag.ms": "200",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """``mode`` of Debezium; what else may happen."""

    mode: str = "json"
    is_compacted: bool = False
    restarts_debezium: bool = True
    kills_debezium: bool = False
    kills_broker: bool = False
    tables: int = 2


Rows = Counter[tuple[Any, ...]]


class DifferenceError(AssertionError):
    """A table does not equal the database's."""


class ChangeGame:
    """One schema with tables of its own. ``seen`` counts the moves."""

    def __init__(self, seed: int, rules: Rules, stack: DebeziumStack, home: Path) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - reproducible
        self.rules = rules
        self.seen: Counter[str] = Counter()
        self.stopped: dict[str, str] = {}
        self._stack = stack
        self._name = f"game_{seed}_{home.name.replace('-', '_').lower()}"[:60]
        self._schema = FollowedSchema(stack, self._name, rules.mode, COMPACTED if rules.is_compacted else None)
        self._catalog = open_catalog(str(home))
        self._ours: dict[str, DynamicTable] = {}
        self._tables = [self._drawn(f"t{number}") for number in range(rules.tables)]
        self._moves_whole = self.chance.random() < 0.7
        self._may_lack_values = rules.is_compacted or rules.kills_debezium or not self._moves_whole
        self._topics: set[str] = set()
        self._others: psycopg.Connection[Any] | None = None

    def play(self, moves: int) -> None:
        """Play, and check at the end; whatever happens, leave nothing on the servers."""
        with self._stack.database() as database:
            self._schema.create(database)
            try:
                for table in self._tables:
                    self._create(database, table)
                self._schema.follow()
                # It can not begin as long as a transaction is open that is older than it.
                self._schema.wait_until_sent(database)
                for _ in range(moves):
                    self._move(database)
                self._commit_the_other(database)
                self._check(database)
            finally:
                if self._others is not None:
                    self._others.close()
                self._schema.end(database)

    def _move(self, database: psycopg.Connection[Any]) -> None:
        weights = self._moves()
        (name,) = self.chance.choices(list(weights), [weight for weight, _ in weights.values()])
        self.seen[name] += 1
        weights[name][1](database)

    def _moves(self) -> dict[str, tuple[float, Callable[[psycopg.Connection[Any]], None]]]:
        rules = self.rules
        is_whole = not (rules.is_compacted or self._schema.mode.is_flattened)
        return {
            "one transaction": (30, self._one_transaction),
            "other transaction": (6, self._change_in_the_other),
            "end of the other": (3, self._commit_the_other),
            # It has no key, so that a compacted topic refuses it, and a flattened one does not tell of it.
            "truncate": (1 if is_whole else 0, self._truncate),
            "identity": (2, self._change_identity),
            "ingest": (6, lambda _: self._ingest_all()),
            "crash": (5, lambda _: self._crash()),
            "compact": (4 if rules.is_compacted else 0, lambda _: self._let_compact()),
            "restart of Debezium": (0.7 if rules.restarts_debezium else 0, lambda _: self._restart_debezium()),
            "kill of the broker": (0.7 if rules.kills_broker else 0, lambda _: kill_and_restart(self._stack.kafka)),
            "check": (4, self._check),
        }

    def _drawn(self, name: str) -> DrawnTable:
        # What has no key is refused by a compacted topic, is not told when flattened, and is doubled when sent again.
        may_lack_key = not (self.rules.is_compacted or self._schema.mode.is_flattened or self.rules.kills_debezium)
        table = drawn_table(self.chance, self._name, name, may_lack_key=may_lack_key)
        lost = self._schema.mode.lost
        table.others = {name: kind for name, kind in table.others.items() if name not in lost} or {
            "c_int": KINDS["int"]
        }
        if not table.key:  # all columns are compared, and lists can't be
            table.others = {n: kind for n, kind in table.others.items() if "ARRAY" not in kind.ours} or {
                "c_int": KINDS["int"]
            }
        return table

    def _create(self, database: psycopg.Connection[Any], table: DrawnTable) -> None:
        table.create(database)
        keeps_null_out = self.chance.random() < 0.5
        columns = {
            name: f"{kind.ours}{' NOT NULL' if keeps_null_out and name in table.required else ''}"
            for name, kind in table.columns.items()
        }
        options = {"bucket": self.chance.choice(("1", "2")), "lease.timeout": "3 s"}
        self._ours[table.name] = self._catalog.create_table(
            f"shop.{table.name}", columns, primary_key=list(table.key), options=options
        )
        for _ in range(self.chance.randrange(4)):
            self._insert(database, table, table.keys(database))

    # What happens in the database.

    def _one_transaction(self, database: psycopg.Connection[Any]) -> None:
        with database.transaction():
            for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
                self._change(database, self.chance.choice(self._tables))

    def _change_in_the_other(self, database: psycopg.Connection[Any]) -> None:
        """Change rows in a transaction that stays open, and keep the other one away from them."""
        if self._others is None:
            self._others = self._stack.database()
            self._others.autocommit = False
        table = self.chance.choice([each for each in self._tables if each.key] or [None])
        if table is None:
            return
        before = set(table.keys(database))
        mine = self.chance.sample(sorted(before, key=repr), min(len(before), 2))
        new = table.new_key(self.chance, before)
        table.locked.update(mine)
        if mine:
            self._others.execute(*table.update(self.chance, mine))
        if new is not None:
            table.locked.add(new)
            self._others.execute(*table.insertion(self.chance, new))
            self._others.execute(*table.update(self.chance, [new]))

    def _commit_the_other(self, _: psycopg.Connection[Any]) -> None:
        if self._others is None:
            return
        if self.chance.random() < 0.2:
            self._others.rollback()
        else:
            self._others.commit()
        for table in self._tables:
            table.locked.clear()

    def _change(self, database: psycopg.Connection[Any], table: DrawnTable) -> None:
        keys = table.keys(database)
        kind = self.chance.choices(("insert", "update", "move", "delete"), (5, 6, 2 if table.key else 0, 2))[0]
        if kind == "insert" or not keys:
            if len(keys) < ROWS_MAX:
                self._insert(database, table, keys)
        elif kind == "update":
            chosen = self.chance.sample(keys, min(len(keys), self.chance.choice((1, 1, 2, 10))))
            database.execute(*table.update(self.chance, chosen))
        elif kind == "move":
            new = table.new_key(self.chance, keys)
            if new is not None:
                moved = self.chance.choice(keys)
                database.execute(*table.update(self.chance, [moved], new, is_whole=self._moves_whole))
        else:
            chosen = self.chance.sample(keys, min(len(keys), self.chance.choice((1, 1, 3))))
            database.execute(*table.deletion(chosen))

    def _insert(self, database: psycopg.Connection[Any], table: DrawnTable, keys: list[Key]) -> None:
        new = table.new_key(self.chance, keys if table.key else ())
        if new is not None:
            database.execute(*table.insertion(self.chance, new))

    def _truncate(self, database: psycopg.Connection[Any]) -> None:
        self._commit_the_other(database)
        self.chance.choice(self._tables).truncate(database)

    def _change_identity(self, database: psycopg.Connection[Any]) -> None:
        keyed = [table for table in self._tables if table.key]
        if keyed:
            self._commit_the_other(database)
            table = self.chance.choice(keyed)
            table.set_identity(database, is_full=not table.is_full)

    # What happens between the database and the table.

    def _restart_debezium(self) -> None:
        connect = self._stack.connect
        if self.rules.kills_debezium and self.chance.random() < 0.5:
            connect.kill()
        else:
            connect.stop()
        connect.start()

    def _let_compact(self) -> None:
        time.sleep(0.5)  # the broker's cleaner compacts what is older than that

    def _crash(self) -> None:
        """Ingest in a process that crashes at some operation, if it gets there."""
        table = self.chance.choice(self._tables)
        ours = self._ours[table.name]
        fault = Fault(FaultKind.CRASH_BEFORE, at=self.chance.randint(1, CRASH_AT_MAX))
        storage = FaultyFileIO(ours.environment.file_io, fault)
        mortal = reopened_in(storage, ours, names=f"crash{sum(self.seen.values())}")
        try:
            self._ingest(table, mortal)
        except SimulatedCrash:
            self.seen["crashed"] += 1

    def _ingest_all(self) -> None:
        for table in self._tables:
            self._ingest(table, self._ours[table.name])

    def _ingest(self, table: DrawnTable, ours: DynamicTable) -> None:
        if table.name in self.stopped or not self._has_topic(table):
            return
        rows_per_commit = self.chance.choice(ROWS_PER_COMMIT)
        try:
            self._ingest_with(ours, table, rows_per_commit)
        except StorageError as error:
            if not (self._may_lack_values and LEFT_OUT.search(str(error))):
                raise
            self.stopped[table.name] = str(error)
            self.seen["stopped"] += 1

    def _ingest_with(self, ours: DynamicTable, table: DrawnTable, rows_per_commit: int) -> None:
        """Ingest, again after errors that say so: an earlier process that crashed holds its lease for a while."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                ingest(
                    ours,
                    self._schema.topic(table.name),
                    options=self._options(),
                    format=self._format(),
                    rows_per_commit=rows_per_commit,
                )
            except RetryableError:
                self.seen["again"] += 1
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _has_topic(self, table: DrawnTable) -> bool:
        topic = self._schema.topic(table.name)
        if topic not in self._topics:
            self._topics = self._schema.topics()
        return topic in self._topics

    def _options(self) -> Mapping[str, str]:
        given = {
            "kafka.bootstrap.servers": self._stack.kafka.bootstrap_servers,
            "source.on-truncate": "apply",
            **self._schema.mode.reading,
        }
        if self._schema.mode.form == "avro":
            given["log.schema-registry.url"] = self._stack.registry_url
        return given

    def _format(self) -> str:
        flattened = "flattened-" if self._schema.mode.is_flattened else ""
        return f"debezium-{flattened}{self._schema.mode.form}"

    # What must hold.

    def _check(self, database: psycopg.Connection[Any]) -> None:
        self._schema.wait_until_sent(database)
        self._ingest_all()
        for table in self._tables:
            if table.name in self.stopped:
                continue
            wanted = table.rows(database)
            held = _rows_of(self._ours[table.name], table)
            if held != wanted:
                raise DifferenceError(f"{self._name}.{table.name}: {_difference(table, wanted, held)}")


def _difference(table: DrawnTable, wanted: Rows, held: Rows) -> str:
    """Return the rows that differ, with short values; of rows of one key only the columns that differ."""
    missing, extra = list((wanted - held).elements()), list((held - wanted).elements())
    said = []
    for row in missing:
        other = next((each for each in extra if table.key and each[: len(table.key)] == row[: len(table.key)]), None)
        if other is None:
            said.append(f"missing {_short(dict(zip(table.columns, row, strict=True)))}")
        else:
            extra.remove(other)
            differing = {
                name: (theirs, ours)
                for name, theirs, ours in zip(table.columns, row, other, strict=True)
                if theirs != ours
            }
            said.append(f"{row[: len(table.key)]} has (theirs, ours) {_short(differing)}")
    said += [f"extra {_short(dict(zip(table.columns, row, strict=True)))}" for row in extra]
    return "\n".join(said[:10])


def _short(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_abridged(value)}" for name, value in row.items())


def _abridged(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2:  # theirs and ours
        return f"({_abridged(value[0])}, {_abridged(value[1])})"
    return text if len(text := repr(value)) < 80 else f"{text[:60]}... ({len(text)})"


def _rows_of(ours: DynamicTable, table: DrawnTable) -> Rows:
    return Counter(plain(list(row.values())) for row in ours.to_arrow().select(list(table.columns)).to_pylist())
