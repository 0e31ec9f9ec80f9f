# ruff: noqa: S608 - the names in these statements are our own
"""A random game of a MariaDB that ``sync`` follows: after each pause every table has the rows of the database.

All types of columns, moved keys, TRUNCATE, columns that are added, dropped and widened, tables that are created, and a
sync that is killed. Its rows are always whole, so that no table may stop.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from local_connect import LocalConnect
from local_kafka import LocalKafka
from local_mariadb import LocalMariadb
from storage_lib import open_catalog
from tests.cdc.debezium_modes import MODES, mariadb_connector
from tests.cdc.debezium_stack import DEADLINE_SECONDS
from tests.cdc.expected_rows import DifferenceError
from tests.cdc.mariadb_kinds import MARIADB_KINDS, WIDENED, MariadbKind
from tests.cdc.mariadb_rows import differing_columns, kinds_of, position_of, rows_of
from tests.cdc.sync_process import SyncProcess, synced_here
from tests.cdc.warm_sync import WarmSync

__all__ = ["MariadbGame"]

ROWS_MAX = 20
TABLES_MAX = 4
KILLED_WITHIN = 2.5
KILLED_WITHIN_IF_WARM = 1.0


class MariadbGame:
    """One database of the server. ``seen`` counts the moves, ``checked`` the tables that were compared.

    ``statements`` times as many changes of the database come between two pauses; ``is_warm``: as in ``GameRules``.
    """

    def __init__(
        self,
        seed: int,
        mode: str,
        mariadb: LocalMariadb,
        kafka: LocalKafka,
        connect: LocalConnect,
        home: Path,
        *,
        statements: float = 1,
        is_warm: bool = False,
    ) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - reproducible
        self.seen: Counter[str] = Counter()
        self.checked = 0
        self._mode = MODES[mode]
        self._statements, self._is_warm = statements, is_warm
        self._mariadb, self._connect = mariadb, connect
        self._name = f"maria_{seed}_{home.name.replace('-', '_').lower()}"[:40]
        self._warehouse = home / "warehouse"
        self._warehouse.mkdir(parents=True)
        self._history = home / "history"
        self._options = {"log.kafka.bootstrap.servers": kafka.bootstrap_servers}
        self._catalog = open_catalog(str(self._warehouse), self._options)
        self._tables: dict[str, dict[str, MariadbKind]] = {}
        self._marks = 0
        self._columns = 0
        self._number = seed % 10_000 + 1_000

    def play(self, moves: int) -> None:
        """Play, and check at the end; whatever happens, leave no connector and no database."""
        self._mariadb.query(f"create database {self._name}; create table {self._name}.marks(n int primary key)")
        try:
            self._create()
            config = mariadb_connector(
                self._mode,
                name=self._name,
                number=self._number,
                port=self._mariadb.port,
                database=self._name,
                registry_url="",
                history=self._history,
            )
            self._connect.put(self._name, {**config, "include.schema.comments": "true"})
            self._wait_until_sent()
            for _ in range(moves):
                self._move()
            self._check()
        finally:
            self._connect.remove(self._name)
            self._mariadb.query(f"drop database {self._name}")

    def outcome(self) -> dict[str, object]:
        """Return how many tables were compared."""
        return {"checked": self.checked}

    def _move(self) -> None:
        moves: dict[str, tuple[float, Callable[[], object]]] = {
            "transaction": (30, self._transaction),
            "create": (3, self._create),
            "truncate": (0 if self._mode.is_flattened else 1, self._truncate),
            "add column": (3, self._add_column),
            "drop column": (1, self._drop_column),
            "widen": (2, self._widen),
        }
        moves = {
            **{name: (weight * self._statements, move) for name, (weight, move) in moves.items()},
            "killed sync": (4, self._sync_and_kill),
            "check": (4, self._check),
        }
        (name,) = self.chance.choices(list(moves), [weight for weight, _ in moves.values()])
        self.seen[name] += 1
        moves[name][1]()

    # The database

    def _run(self, *statements: str) -> None:
        self._mariadb.query(";\n".join(statements), database=self._name)

    def _create(self) -> None:
        if len(self._tables) == TABLES_MAX:
            return
        name = f"t{len(self._tables)}"
        kinds = {self._new_name(): self.chance.choice(MARIADB_KINDS) for _ in range(self.chance.randint(1, 8))}
        columns = "".join(f", {each} {kind.type} comment '{_comment(each)}'" for each, kind in kinds.items())
        self._run(f"create table {name}(id int primary key{columns})")
        self._tables[name] = kinds
        self._run(*(self._insertion(name, number) for number in range(self.chance.randint(1, 3))))

    def _transaction(self) -> None:
        """Change rows of some tables, at once."""
        tables = self.chance.sample([*self._tables], self.chance.randint(1, len(self._tables)))
        changes = [each for each in map(self._change, tables) if each is not None]
        self._run("begin", *changes, "commit")

    def _change(self, table: str) -> str | None:
        kinds = self._tables[table]
        ids = [int(row[0]) for row in self._mariadb.query(f"select id from {table}", database=self._name)]
        new = self.chance.choice([each for each in range(60) if each not in ids])
        kind = self.chance.choices(("insert", "update", "move", "delete"), (5, 6, 2, 2))[0]
        if kind == "insert" or not ids:
            return self._insertion(table, new) if len(ids) < ROWS_MAX else None
        chosen = ", ".join(map(str, self.chance.sample(ids, min(len(ids), 1 if kind == "move" else 3))))
        if kind == "delete":
            return f"delete from {table} where id in ({chosen})"
        names = self.chance.sample([*kinds], self.chance.randint(1, len(kinds)))
        sets = [f"{name} = {kinds[name].draw(self.chance)}" for name in names]
        moved = [f"id = {new}"] if kind == "move" else []
        return f"update {table} set {', '.join([*sets, *moved])} where id in ({chosen})"

    def _insertion(self, table: str, number: int) -> str:
        kinds = self._tables[table]
        values = [str(number), *(kind.draw(self.chance) for kind in kinds.values())]
        return f"insert into {table} values ({', '.join(values)})"

    def _truncate(self) -> None:
        self._run(f"truncate table {self.chance.choice([*self._tables])}")

    def _add_column(self) -> None:
        name, kind = self._new_name(), self.chance.choice(MARIADB_KINDS)
        table = self.chance.choice([*self._tables])
        self._run(f"alter table {table} add column {name} {kind.type} comment '{_comment(name)}'")
        self._tables[table][name] = kind

    def _drop_column(self) -> None:
        table = self.chance.choice([*self._tables])
        if len(self._tables[table]) > 1:
            name = self.chance.choice([*self._tables[table]])
            self._run(f"alter table {table} drop column {name}")
            del self._tables[table][name]

    def _widen(self) -> None:
        found = [(t, n, k) for t, kinds in self._tables.items() for n, k in kinds.items() if k.type in WIDENED]
        if found:
            table, name, kind = self.chance.choice(found)
            wider = next(each for each in MARIADB_KINDS if each.type == WIDENED[kind.type])
            # Without its comment, the column would have none from then on.
            self._run(f"alter table {table} modify column {name} {wider.type} comment '{_comment(name)}'")
            self._tables[table][name] = wider

    def _new_name(self) -> str:
        self._columns += 1
        return f"c{self._columns}"

    def _wait_until_sent(self) -> None:
        """Return once Kafka has acknowledged all that is committed: a position is that of the transaction before."""
        wanted = 0
        for _ in range(2):
            self._marks += 1
            self._run(f"insert into marks values ({self._marks})")
            wanted = wanted or position_of(self._mariadb)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not any(_reached(each) >= wanted for each in self._connect.positions(self._name)):
            failure = self._connect.failure(self._name)
            assert failure is None, failure
            assert time.monotonic() < deadline, self._connect.positions(self._name)
            self._marks += 1
            self._run(f"insert into marks values ({self._marks})")
            time.sleep(0.1)

    # The tables

    def _sync(self) -> SyncProcess | WarmSync:
        return (WarmSync if self._is_warm else SyncProcess)(self._warehouse, self._options, self._arguments())

    def _arguments(self) -> list[str]:
        flattened = "flattened-" if self._mode.is_flattened else ""
        return [
            *("--topics", f"{self._name}.{self._name}.*", "--exclude", "*.marks", "--into", "shop"),
            *("--format", f"debezium-{flattened}{self._mode.form}", "--with", "source.on-truncate=apply"),
            *("--table-option", "log.system=none", "--table-option", "lease.timeout=3 s"),
        ]

    def _sync_and_kill(self) -> None:
        with self._sync() as running:
            within = KILLED_WITHIN_IF_WARM if self._is_warm else KILLED_WITHIN
            self.seen["killed"] += running.kill_after(self.chance.random() * within)

    def _check(self) -> None:
        self._wait_until_sent()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            state = synced_here(self._warehouse, self._options, self._arguments())
            if not any(each["error"] for each in state.tables.values()) and state.tables:
                break
            if not state.is_worth_trying or time.monotonic() > deadline:
                raise DifferenceError(str(state))
        for name in self._tables:
            self._check_table(name)

    def _check_table(self, name: str) -> None:
        kinds = kinds_of(self._mariadb, self._name, name)
        ours = self._catalog.load_table(f"shop.{name}")
        theirs = {str(row["id"]): row for row in rows_of(self._mariadb, self._name, name, kinds)}
        mine = {str(row["id"]): row for row in ours.to_arrow().to_pylist()}
        if theirs.keys() != mine.keys():
            raise DifferenceError(f"{name}: missing {theirs.keys() - mine.keys()}, extra {mine.keys() - theirs.keys()}")
        for key, row in mine.items():
            found = differing_columns(row, theirs[key], kinds, [each for each in kinds if each in row])
            if found:
                raise DifferenceError(f"{name}, row {key}: {found}")
        for field in ours.schema.fields:
            if field.name != "id" and field.description != _comment(field.name):
                raise DifferenceError(f"{name}: the comment of {field.name} is {field.description!r}")
        self.checked += 1


def _comment(column: str) -> str:
    return f"what {column} means"


def _reached(position: dict[str, object]) -> int:
    return int(str(position.get("gtids") or "0").rpartition("-")[2])
