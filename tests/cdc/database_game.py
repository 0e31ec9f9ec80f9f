"""A random game of a whole database: its tables change in rows and shape, and ``sync`` follows by Debezium.

Tables are created, dropped, created again, renamed and truncated; columns are added, dropped, renamed and get other
types; keys and what is logged of a row change. ``dynamic-table sync`` is a process that is killed, or two at once.
After each pause every table has the rows that the records of its topic say (``ExpectedRows``), and ``verify`` finds
exactly the differences from the database that a comparison of our own finds. A table may stop or reject records only
for a reason of its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage_lib import DynamicTable, open_catalog, verify
from storage_lib.errors import InvalidInputError
from tests.cdc.column_kinds import KINDS, plain
from tests.cdc.debezium_modes import MODES
from tests.cdc.debezium_stack import DEADLINE_SECONDS, DebeziumStack
from tests.cdc.expected_rows import DifferenceError, ExpectedRows, Following, same, spelled_key
from tests.cdc.followed_game import Database, FollowedGame, Move, TableEvent, shape_of
from tests.cdc.living_table import CHANGES, LivingTable, Row
from tests.cdc.sync_process import SyncedState, SyncProcess, synced_here
from tests.cdc.warm_sync import WarmSync
from tests.support.broker_restart import kill_and_restart

__all__ = ["DatabaseGame", "GameRules"]

TABLES_MAX = 5
NAMES = tuple(f"t{number}" for number in range(8))
LEFT_OUT_TABLE = "t7"
"""It is excluded from the sync in some games."""

NULL_STAYS = {f"{part}.converter.replace.null.with.default": "false" for part in ("key", "value")}
"""Otherwise a column's default is written for null; so does the transformation that flattens."""

KILLED_WITHIN = 2.5
"""Seconds in which a sync that is to be killed is."""

KILLED_WITHIN_IF_WARM = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GameRules:
    """``mode`` of Debezium, how the sync follows, and what else may happen.

    ``starts_processes``: each sync is a process of its own, and not only those that are killed or run at once;
    ``is_warm``: it is forked from one that has imported. ``statements`` times as many changes of the database come
    between two pauses.
    """

    mode: str = "json-schema"
    following: Following = field(default_factory=Following)
    renames: bool = False
    excludes: bool = False
    workers: int = 4
    kills_sync: bool = True
    starts_processes: bool = True
    restarts_debezium: bool = False
    kills_debezium: bool = False
    kills_broker: bool = False
    changes_keys: bool = True
    is_warm: bool = False
    statements: float = 1


class DatabaseGame(FollowedGame):
    """A schema of a database, and the tables that follow it. ``reasons`` say why tables stop."""

    rows_max = 20

    def __init__(self, seed: int, rules: GameRules, stack: DebeziumStack, home: Path) -> None:
        flattens = MODES[rules.mode].is_flattened
        stays = {**NULL_STAYS, **({"transforms.unwrap.replace.null.with.default": "false"} if flattens else {})}
        super().__init__(seed, stack, f"whole_{seed}_{home.name}", rules.mode, stays)
        self.rules = rules
        self.reasons: dict[str, str] = {}
        self.checked: Counter[str] = Counter()
        self._home = home / "warehouse"
        self._home.mkdir(parents=True)
        self._options = {"log.kafka.bootstrap.servers": stack.kafka.bootstrap_servers}
        if stack.registry_url:
            self._options["log.schema-registry.url"] = stack.registry_url
        self._catalog = open_catalog(str(self._home), self._options)
        self._into = f"shop_{self.name}"
        """A database of this game alone: the topics of logs are named for their tables, and games share a broker."""
        self._expected: dict[str, ExpectedRows] = {}

    def begin(self, database: Database) -> None:
        """See ``FollowedGame``."""
        for _ in range(2):
            self._create_table(database)

    def record(self, events: Sequence[TableEvent]) -> None:
        """See ``FollowedGame``."""
        for name, event in events:
            self._expected_of(name).apply(event)

    def outcome(self) -> Mapping[str, object]:
        """See ``FollowedGame``."""
        return {**self.checked, **{name: reason[:300] for name, reason in self.reasons.items()}}

    def _expected_of(self, table: str) -> ExpectedRows:
        return self._expected.setdefault(table, ExpectedRows(self.rules.following, self.schema.mode.sent_types))

    def moves(self) -> Mapping[str, Move]:
        """See ``FollowedGame``."""
        rules = self.rules
        changes: dict[str, Move] = {
            "one transaction": (30, self.one_transaction),
            "other transaction": (4, self.change_in_the_other),
            "end of the other": (2, self.end_the_other),
            "create table": (3, self._create_table),
            "drop table": (0.7, self._drop_table),
            "create again": (1, self._create_again),
            "rename table": (1, self._rename_table),
            # A flattened topic has no record of it.
            "truncate": (0 if self.schema.mode.is_flattened else 0.7, self._truncate),
            "add column": (4, self._add_column),
            "drop column": (2, self._drop_column),
            "rename column": (1, self._rename_column),
            "change type": (3, self._change_type),
            "not null": (1, self._change_required),
            "key": (0.4 if rules.changes_keys else 0, self._change_key),
            "identity": (2, self.change_identity),
        }
        return {
            **{name: (weight * rules.statements, move) for name, (weight, move) in changes.items()},
            "sync": (3, lambda _: self._synced_once()),
            "two syncs": (1, lambda _: self._sync_twice()),
            "killed sync": (4 if rules.kills_sync else 0, lambda _: self._sync_and_kill()),
            "restart of Debezium": (
                0.7 if rules.restarts_debezium else 0,
                lambda _: self.restart_debezium(may_kill=rules.kills_debezium),
            ),
            "kill of the broker": (0.7 if rules.kills_broker else 0, lambda _: kill_and_restart(self.stack.kafka)),
            "check": (4, self.check),
        }

    # What happens to the shape of the database.

    def _create_table(self, database: Database) -> None:
        free = [name for name in NAMES if name not in {each.name for each in self.tables}]
        if free and len(self.tables) < TABLES_MAX:
            self._create(database, self.chance.choice(free))

    def _create(self, database: Database, name: str) -> None:
        # Without a key there is no record of a row when flattened, and two when it is sent again.
        may_lack_key = not (self.schema.mode.is_flattened or self.rules.kills_debezium)
        table = LivingTable.drawn(self.chance, self.name, name, self.kinds, may_lack_key=may_lack_key)
        self.say(f"create {name} {[*table.key]} {[(n, k.postgres) for n, k in table.others.items()]} {table.is_full=}")
        with database.transaction():
            table.create(database)
            self.tables.append(table)
            events = [each for _ in range(self.chance.randrange(4)) for each in self.insert(database, table)]
        self.record(events)

    def _drop_table(self, database: Database) -> None:
        if len(self.tables) > 1:
            table = self.chance.choice(self.tables)
            self._settle(database)
            self.say(f"drop {table.name}")
            table.drop(database)
            self.tables.remove(table)

    def _create_again(self, database: Database) -> None:
        """Drop a table, and create another one with its name, perhaps in one transaction."""
        table = self.chance.choice(self.tables)
        self._settle(database)
        self.say(f"drop {table.name}, to create it again")
        with database.transaction():
            table.drop(database)
            self.tables.remove(table)
            if self.chance.random() < 0.7 or not self.rules.changes_keys:
                # A table of the same columns and key, perhaps of others.
                again = LivingTable(
                    table.schema, table.name, {**table.key}, {**table.others}, {*table.required}, table.is_full
                )
                again.create(database)
                self.tables.append(again)
        if table.name not in {each.name for each in self.tables}:
            self._create(database, table.name)  # with another key, perhaps

    def _rename_table(self, database: Database) -> None:
        free = [name for name in NAMES if name not in {each.name for each in self.tables}]
        table = self.chance.choice(self.tables)
        new = self.chance.choice(free)
        self._settle(database)
        self.say(f"rename {table.name} to {new}")
        table.rename(database, new)

    def _truncate(self, database: Database) -> None:
        self.end_the_other(database)
        table = self.chance.choice(self.tables)
        self.say(f"truncate {table.name}")
        table.truncate(database)
        self._expected_of(table.name).truncate(shape_of(table))

    def _add_column(self, database: Database) -> None:
        table = self._to_alter(database)
        names = table.free_names()
        if not names:
            return
        kind = KINDS[self.chance.choice([each for each in self.kinds if table.key or "ARRAY" not in KINDS[each].ours])]
        # The converter of Avro writes the default for null.
        has_default = self.schema.mode.form != "avro" and not kind.is_long and self.chance.random() < 0.4
        default = kind.draw(self.chance) if has_default else None
        name = self.chance.choice(names)
        self.say(f"add {table.name}.{name} {kind.postgres} default {default!r}")
        table.add_column(database, name, kind, default)

    def _drop_column(self, database: Database) -> None:
        table = self._to_alter(database)
        if table.key and table.others:
            name = self.chance.choice([*table.others])
            self.say(f"drop {table.name}.{name}")
            table.drop_column(database, name)

    def _rename_column(self, database: Database) -> None:
        table = self._to_alter(database)
        free = table.free_names()
        if table.key and table.others and free:
            old, new = self.chance.choice([*table.others]), self.chance.choice(free)
            self.say(f"rename {table.name}.{old} to {new}")
            table.rename_column(database, old, new)

    def _change_type(self, database: Database) -> None:
        table = self._to_alter(database)
        possible = [
            (name, change)
            for name, kind in table.others.items()
            for change in CHANGES
            if kind is KINDS[change.before] and change.after in self.kinds and table.key
        ]
        if possible:
            name, change = self.chance.choice(possible)
            self.say(f"type of {table.name}.{name}: {change.before} to {change.after}")
            with database.transaction():
                table.change_type(database, name, change)

    def _change_required(self, database: Database) -> None:
        table = self._to_alter(database)
        if not table.others:
            return
        name = self.chance.choice([*table.others])
        if name in table.required:
            table.set_required(database, name, is_required=False)
        elif all(row[name] is not None for row in table.rows(database)):
            table.set_required(database, name, is_required=True)

    def _change_key(self, database: Database) -> None:
        keyed = [table for table in self.tables if table.key]
        if keyed:
            table = self.chance.choice(keyed)
            self._settle(database)
            self.say(f"key of {table.name}")
            with database.transaction():
                table.change_key(database, f"k_new{self.seen['key']}")

    def _to_alter(self, database: Database) -> LivingTable:
        """Return a table; sometimes all of its changes have been sent before it is altered."""
        if self.chance.random() < 0.5:
            self._settle(database)
        else:
            self.end_the_other(database)
        return self.chance.choice(self.tables)

    def _settle(self, database: Database) -> None:
        """Wait until everything is sent: Debezium asks the database for a table's key at any later time."""
        self.end_the_other(database)
        self.schema.wait_until_sent(database)

    # What happens between the database and the tables.

    def _sync(self) -> SyncProcess | WarmSync:
        return (WarmSync if self.rules.is_warm else SyncProcess)(self._home, self._options, self._arguments())

    def _synced_once(self) -> SyncedState:
        if not self.rules.starts_processes:
            return synced_here(self._home, self._options, self._arguments())
        with self._sync() as running:
            return running.ended()

    def _arguments(self) -> list[str]:
        rules, following = self.rules, self.rules.following
        flattened = "flattened-" if self.schema.mode.is_flattened else ""
        source = {
            "source.schema-change": following.schema_change,
            "source.on-reject": following.on_reject,
            "source.on-truncate": following.on_truncate,
            **self.schema.mode.reading,
        }
        table_options = {
            "lease.timeout": "3 s",
            "bucket": "1",
            "log.system": "kafka" if following.is_logged else "none",
        }
        return [
            *("--topics", f"{self.name}.{self.name}.*", "--into", self._into, "--exclude", "*.marks"),
            *("--format", f"debezium-{flattened}{self.schema.mode.form}", "--workers", str(rules.workers)),
            *(("--exclude", f"*.{LEFT_OUT_TABLE}") if rules.excludes else ()),
            *(("--rename", r"t([0-9])=of_\1", "--prefix", "our_") if rules.renames else ()),
            *(part for key, value in source.items() for part in ("--with", f"{key}={value}")),
            *(part for key, value in table_options.items() for part in ("--table-option", f"{key}={value}")),
        ]

    def _sync_twice(self) -> None:
        """Run two at once: each record is written by one of them."""
        with self._sync() as first, self._sync() as second:
            for each in (first, second):
                each.ended()

    def _sync_and_kill(self) -> None:
        with self._sync() as running:
            within = KILLED_WITHIN_IF_WARM if self.rules.is_warm else KILLED_WITHIN
            if running.kill_after(self.chance.random() * within):
                self.seen["killed"] += 1

    def _synced(self) -> SyncedState:
        """Sync until nothing asks for another try: a process that was killed holds its lease for a while."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            state = self._synced_once()
            if not state.is_worth_trying and not self._is_early(state):
                return state
            self.seen["again"] += 1
            assert time.monotonic() < deadline, state

    def _is_early(self, state: SyncedState) -> bool:
        return any(each["state"] == "stopped" and "Retry" in (each["error"] or "") for each in state.tables.values())

    # What must hold.

    def check(self, database: Database) -> None:
        """See ``FollowedGame``."""
        self._settle(database)
        state = self._synced()
        topics = self.schema.topics()
        by_name = {table.name: table for table in self.tables}
        for name in NAMES:
            if self.schema.topic(name) not in topics or (self.rules.excludes and name == LEFT_OUT_TABLE):
                continue
            ours = f"{self._into}.our_of_{name[1:]}" if self.rules.renames else f"{self._into}.{name}"
            try:
                self._check_table(database, name, ours, state.tables.get(ours), by_name.get(name))
            except DifferenceError as error:
                error.add_note(f"{name}: {state.tables.get(ours)} {state.message[-2000:]}")
                raise

    def _check_table(
        self,
        database: Database,
        name: str,
        ours: str,
        printed: Mapping[str, Any] | None,
        source: LivingTable | None,
    ) -> None:
        said = self._expected.get(name)
        if printed is None or said is None:
            raise DifferenceError(f"{name} has a topic, but {'the sync knows nothing' if said else 'no record'}")
        if (printed["state"] == "waiting") is said.is_begun:
            raise DifferenceError(
                f"{name} is {printed['state']}, but a row {'has' if said.is_begun else 'has not'} come"
            )
        if not said.is_begun:
            return
        error = printed["error"]
        if error is not None and said.must_stop is None and not said.may_stop:
            raise DifferenceError(f"{name} has stopped without a reason of its own: {error}")
        if error is None and said.must_stop is not None:
            raise DifferenceError(f"{name} has read everything, but: {said.must_stop}")
        table = self._catalog.load_table(ours)
        held = _held(table)
        if error is not None:
            self.reasons[name] = error
            self.checked["stopped"] += 1
            if said.must_stop and said.must_stop not in error and not said.may_stop:
                raise DifferenceError(f"{name} has to stop because {said.must_stop!r}, but stops because {error}")
            if not self.rules.kills_debezium:  # then it may have stopped at a change that was sent again
                said.check_stopped(held)
        else:
            self.checked["followed"] += 1
            said.check(held, is_whole=self._is_whole(table, said))
        if source is not None:
            self._verify(database, table, said, source)

    def _is_whole(self, table: DynamicTable, said: ExpectedRows) -> bool:
        """Whether the table has rejected nothing; each rejected record needs a reason, and so do those that fail."""
        on_reject = self.rules.following.on_reject
        rejected = table.inspect.rejected_count() if on_reject == "quarantine" else 0
        if rejected and not said.may_reject:
            raise DifferenceError(f"rejected {table.inspect.rejected().to_pylist()}")
        if on_reject == "quarantine" and rejected < said.must_reject:
            raise DifferenceError(f"rejected {rejected} records, but {said.must_reject} can't be taken")
        return on_reject == "fail" or (on_reject == "quarantine" and not rejected)

    def _verify(self, database: Database, table: DynamicTable, said: ExpectedRows, source: LivingTable) -> None:
        """``verify`` agrees with a comparison of our own, wherever it can compare."""
        if tuple(source.key) != said.key:
            return
        names = [name for name in table.arrow_schema.names if name in source.columns]
        theirs = source.rows(database)
        expected = _differences(_held(table), theirs, names, tuple(source.key))
        relation = f'"{source.schema}"."{source.name}"'
        try:
            found = verify(table, self.stack.postgres.uri, relation=relation, columns=names)
        except InvalidInputError as error:
            if "have no common form" in str(error) or "of kind" in str(error):
                self.checked["incomparable"] += 1
                return
            raise
        got = (found.missing, found.extra, found.different)
        if got != expected:
            raise DifferenceError(f"{table.name}: verify found {found}, expected {expected}")
        self.checked["equal" if found.is_equal else "different"] += 1


def _held(table: DynamicTable) -> list[Row]:
    return [{name: plain(value) for name, value in row.items()} for row in table.to_arrow().to_pylist()]


def _differences(
    mine: Sequence[Row], theirs: Sequence[Row], names: Sequence[str], key: Sequence[str]
) -> tuple[int, int, int]:
    """Count the keys that only the source has, only the table has, and whose rows differ; without a key, rows."""
    if not key:
        left = [{name: row[name] for name in names} for row in mine]
        missing = 0
        for row in theirs:
            place = next((i for i, each in enumerate(left) if all(same(each[n], row[n]) for n in names)), None)
            if place is None:
                missing += 1
            else:
                del left[place]
        return missing, len(left), 0
    our_rows = {spelled_key(row, key): row for row in mine}
    their_rows = {spelled_key(row, key): row for row in theirs}
    different = sum(
        not all(same(our_rows[each][name], their_rows[each][name]) for name in names)
        for each in our_rows.keys() & their_rows.keys()
    )
    return len(their_rows.keys() - our_rows.keys()), len(our_rows.keys() - their_rows.keys()), different
