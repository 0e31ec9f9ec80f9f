"""A random game with a real database, a real Debezium and ``ingest``: after each pause the table equals the database.

Rows are inserted, changed, moved to other keys and deleted, in transactions that are long or short; long values are not
sent unless they change; tables are truncated, and what is logged of a row before changes. ``ingest`` crashes at any
operation on its storage, Debezium and the broker are restarted or killed, topics are compacted. A table may stop only
for a reason that the game knows, and that its own moves have caused.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage_lib import DynamicTable, ingest, open_catalog
from storage_lib.errors import RetryableError, StorageError
from tests.cdc.column_kinds import plain
from tests.cdc.debezium_stack import DEADLINE_SECONDS, DebeziumStack
from tests.cdc.expected_rows import DifferenceError
from tests.cdc.followed_game import Database, FollowedGame, Move, TableEvent
from tests.cdc.living_table import LivingTable
from tests.support.broker_restart import kill_and_restart
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in

__all__ = ["ChangeGame", "Rules"]

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


class ChangeGame(FollowedGame):
    """One schema with tables of its own, each ingested into one of ours. ``stopped`` says why some are not any more."""

    rows_max = 30

    def __init__(self, seed: int, rules: Rules, stack: DebeziumStack, home: Path) -> None:
        options = COMPACTED if rules.is_compacted else None
        super().__init__(seed, stack, f"game_{seed}_{home.name}", rules.mode, options)
        self.rules = rules
        self.stopped: dict[str, str] = {}
        self._catalog = open_catalog(str(home))
        self._ours: dict[str, DynamicTable] = {}
        self.moves_whole = self.chance.random() < 0.7
        self._may_lack_values = rules.is_compacted or rules.kills_debezium or not self.moves_whole
        self._topics: set[str] = set()

    def begin(self, database: Database) -> None:
        """See ``FollowedGame``."""
        for number in range(self.rules.tables):
            self._create(database, f"t{number}")

    def moves(self) -> Mapping[str, Move]:
        """See ``FollowedGame``."""
        rules = self.rules
        is_whole = not (rules.is_compacted or self.schema.mode.is_flattened)
        return {
            "one transaction": (30, self.one_transaction),
            "other transaction": (6, self.change_in_the_other),
            "end of the other": (3, self.end_the_other),
            # It has no key, so that a compacted topic refuses it, and a flattened one has no record of it.
            "truncate": (1 if is_whole else 0, self._truncate),
            "identity": (2, self.change_identity),
            "ingest": (6, lambda _: self._ingest_all()),
            "crash": (5, lambda _: self._crash()),
            "compact": (4 if rules.is_compacted else 0, lambda _: self._let_compact()),
            "restart of Debezium": (
                0.7 if rules.restarts_debezium else 0,
                lambda _: self.restart_debezium(may_kill=rules.kills_debezium),
            ),
            "kill of the broker": (0.7 if rules.kills_broker else 0, lambda _: kill_and_restart(self.stack.kafka)),
            "check": (4, self.check),
        }

    def record(self, events: Sequence[TableEvent]) -> None:
        """See ``FollowedGame``: the database itself is what the tables have to equal."""

    def outcome(self) -> Mapping[str, object]:
        """See ``FollowedGame``."""
        return {"stopped": self.stopped}

    def _create(self, database: Database, name: str) -> None:
        # Without a key a compacted topic refuses rows; there is no record of a row when flattened, and two when it is
        # sent again.
        may_lack_key = not (self.rules.is_compacted or self.schema.mode.is_flattened or self.rules.kills_debezium)
        table = LivingTable.drawn(self.chance, self.name, name, self.kinds, may_lack_key=may_lack_key)
        table.create(database)
        self.tables.append(table)
        keeps_null_out = self.chance.random() < 0.5
        columns = {
            column: f"{kind.ours}{' NOT NULL' if keeps_null_out and column in table.required else ''}"
            for column, kind in table.columns.items()
        }
        options = {"bucket": self.chance.choice(("1", "2")), "lease.timeout": "3 s"}
        self._ours[name] = self._catalog.create_table(
            f"shop.{name}", columns, primary_key=list(table.key), options=options
        )
        for _ in range(self.chance.randrange(4)):
            self.insert(database, table)

    def _truncate(self, database: Database) -> None:
        self.end_the_other(database)
        self.chance.choice(self.tables).truncate(database)

    # What happens between the database and the table.

    def _let_compact(self) -> None:
        time.sleep(0.5)  # the broker's cleaner compacts what is older than that

    def _crash(self) -> None:
        """Ingest in a process that crashes at some operation, if it gets there."""
        table = self.chance.choice(self.tables)
        ours = self._ours[table.name]
        fault = Fault(FaultKind.CRASH_BEFORE, at=self.chance.randint(1, CRASH_AT_MAX))
        storage = FaultyFileIO(ours.environment.file_io, fault)
        mortal = reopened_in(storage, ours, names=f"crash{sum(self.seen.values())}")
        try:
            self._ingest(table, mortal)
        except SimulatedCrash:
            self.seen["crashed"] += 1

    def _ingest_all(self) -> None:
        for table in self.tables:
            self._ingest(table, self._ours[table.name])

    def _ingest(self, table: LivingTable, ours: DynamicTable) -> None:
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

    def _ingest_with(self, ours: DynamicTable, table: LivingTable, rows_per_commit: int) -> None:
        """Ingest, again after errors that say so: an earlier process that crashed holds its lease for a while."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            try:
                ingest(
                    ours,
                    self.schema.topic(table.name),
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

    def _has_topic(self, table: LivingTable) -> bool:
        topic = self.schema.topic(table.name)
        if topic not in self._topics:
            self._topics = self.schema.topics()
        return topic in self._topics

    def _options(self) -> Mapping[str, str]:
        given = {
            "kafka.bootstrap.servers": self.stack.kafka.bootstrap_servers,
            "source.on-truncate": "apply",
            **self.schema.mode.reading,
        }
        if self.schema.mode.form == "avro":
            given["log.schema-registry.url"] = self.stack.registry_url
        return given

    def _format(self) -> str:
        flattened = "flattened-" if self.schema.mode.is_flattened else ""
        return f"debezium-{flattened}{self.schema.mode.form}"

    # What must hold.

    def check(self, database: Database) -> None:
        """See ``FollowedGame``."""
        self.schema.wait_until_sent(database)
        self._ingest_all()
        for table in self.tables:
            if table.name in self.stopped:
                continue
            wanted = Counter(tuple(row.values()) for row in table.rows(database))
            held = _rows_of(self._ours[table.name], table)
            if held != wanted:
                raise DifferenceError(f"{self.name}.{table.name}: {_difference(table, wanted, held)}")


def _difference(table: LivingTable, wanted: Rows, held: Rows) -> str:
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


def _rows_of(ours: DynamicTable, table: LivingTable) -> Rows:
    return Counter(plain(list(row.values())) for row in ours.to_arrow().select(list(table.columns)).to_pylist())
