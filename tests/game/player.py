"""The state of a game: the table, the handles of several ages through which it is used, and its past."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa

from storage_lib import (
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    MemoryCatalog,
    NotFoundError,
)
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.game.disk_catalog import disk_catalog
from tests.game.drawn_table import PARTITIONS, draw_table
from tests.game.followers import Follower
from tests.game.model import Model, Row
from tests.game.outside_reader import OutsideReader
from tests.game.pairs_met import PairsMet
from tests.support.fake_environment import FakeClock, fake_environment

Act: TypeAlias = Callable[[DynamicTable, dict[str, Any]], Any]
"""Returns a snapshot or an altered table, or None if nothing had to be committed."""
Interrupt: TypeAlias = Callable[[Act, dict[str, Any], Callable[[], None] | None], Snapshot | None]
KEYS = 12
DISK_SHARE = 0.25
"""Share of games on the local disk, without a log and with materialized tables."""
HANDLES_MAX = 3
REFUSALS = (InvalidInputError, CommitConflictError, NotFoundError)


class DifferenceError(AssertionError):
    """A reader does not agree with the model."""


@dataclass(frozen=True)
class Committed:
    """A commit that can be repeated under its identity, as a task that did not hear of its success does."""

    what: str
    act: Act
    identity: dict[str, Any]
    change: Callable[[], None]
    is_tracked: bool
    columns: dict[str, int]
    """Ids of the columns by the names that its rows give them."""
    schema_id: int
    snapshot_id: int


@dataclass
class Game:
    """One table and everything that a game knows of it. ``directory``: on the local disk, for states of streams."""

    seed: int
    directory: Path
    needs_disk: bool = False

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)  # noqa: S311  reproducible
        self.clock = FakeClock()
        self.is_on_disk = self.needs_disk or self.rng.random() < DISK_SHARE
        self.files: FileIO = (
            LocalFileIO(durable=False) if self.is_on_disk else MemoryFileIO(now_millis=self.clock.now_millis)
        )
        self._log_prefix: str | None = None
        self.catalog = self.opened_catalog(self.files, "name")
        self.pairs = PairsMet()
        self.drawn, table = draw_table(self.rng, self.catalog, self.pairs.table_refused, has_log=not self.is_on_disk)
        self.pairs.has_table(self.drawn)
        self.model = Model(self.drawn, {each.name: each.id for each in table.schema.fields})
        self.handles = [table]
        self._observer = self.newest()
        self.past: dict[int, Model] = {0: self.model.copy()}
        """Rows of each snapshot since the last rollback."""
        self.tags: dict[str, Model] = {}
        self.tagged: dict[str, int] = {}
        self.answers: dict[str, Any] = {}
        """Queries of the materialized tables, by name."""
        self.planned: list[tuple[DynamicTable, list[Any]]] = []
        """Compactions that are not committed yet."""
        self.consumers: dict[str, int] = {}
        """Snapshots that consumers read next."""
        self.followers: list[Follower] = []
        self.waiting: list[Follower] = []
        """Followers that read on after an interruption: the next writer completes the log for them."""
        self.outside: OutsideReader | None = None
        """Begins after each commit that the log lacks."""
        self.committed: list[Committed] = []
        """Commits that count in the table."""
        self.committed_by: dict[int, list[Committed]] = {0: []}
        """Commits that counted in each snapshot."""
        self.taken_back: list[Committed] = []
        self.life = 0
        """How often the table was recreated."""
        self.keeps_table = False
        """Whether it may not be recreated now."""
        self.told = [f"seed {self.seed}: key {self.drawn.key}, {self.drawn.options}"]
        self.last: str | None = None
        """The last move or answer of a reader."""
        self.interrupt: Interrupt | None = None
        self.reads_first = False
        """Whether a process is suspended that has computed its change from the rows of the table."""
        """Acts in a process that is interrupted; None while one is. Without a change, what is done changes no rows."""
        self._numbers = 0
        self._sequence = 100

    # --- handles ------------------------------------------------------------------------------------------------

    def opened_catalog(self, files: FileIO, names: str) -> WarehouseCatalog:
        """Return the catalog of a process; ``names`` differ between processes."""
        if self.is_on_disk:
            return disk_catalog(f"{self.directory}/warehouse", self.clock, names, files)
        catalog = MemoryCatalog(environment=fake_environment(files, clock=self.clock, names=names))
        if self._log_prefix is None:
            self._log_prefix = catalog.log_prefix
        # All processes have one log.
        catalog.log_prefix = self._log_prefix
        return catalog

    def newest(self) -> DynamicTable:
        """Return a handle that a process has just opened."""
        return self.catalog.load_table("game.t")

    def observed(self) -> DynamicTable:
        """Return a handle with the newest schema that reads only, and stays open: opening one costs more."""
        self._observer = self._observer.refresh()
        return self._observer

    def handle(self) -> DynamicTable:
        """Return a handle of some age."""
        if self.rng.random() < 0.3:
            self.handles = [self.newest(), *self.handles][:HANDLES_MAX]
        return self.rng.choice(self.handles)

    def reopened(self, table: DynamicTable) -> None:
        """Forget older handles of the table, as programs have to after it was rewritten."""
        self.handles = [table]

    def begin_again(self, table: DynamicTable) -> None:
        """Forget everything that belonged to the table before, which was dropped."""
        self.life += 1
        self.forget_streams()
        self.model.columns = {each.name: each.id for each in table.schema.fields}
        self.model.versions.clear()
        self.model.bag.clear()
        self.handles = [table]
        self._observer = self.newest()
        self.past, self.committed_by = {0: self.model.copy()}, {0: []}
        for remembered in (self.tags, self.tagged, self.planned, self.consumers, self.committed, self.taken_back):
            remembered.clear()
        self._sequence = 100

    # --- rows ---------------------------------------------------------------------------------------------------

    def new_row(self, handle: DynamicTable, **given: Any) -> Row:
        """Draw a row of the columns that the handle knows; others of the table are null."""
        drawn: Row = dict.fromkeys(self.model.columns.values())
        for each in handle.schema.fields:
            if each.id in drawn:
                drawn[each.id] = given.get(each.name, self._value(each.name))
        return drawn

    def _value(self, name: str) -> Any:
        if name == "p":
            return self.rng.choice(PARTITIONS)
        if name == "k":
            return self.rng.randrange(KEYS)
        if name == "s":
            return self.rng.randrange(50)
        if self.rng.random() < 0.2:
            return None
        return f"t{self.rng.randrange(9)}" if name == "t" else self.rng.randrange(-9, 9)

    def newer_sequence(self) -> int:
        """Return a sequence newer than all before: a key that was deleted may have been forgotten by a compaction."""
        self._sequence += 1
        return -self._sequence if self.drawn.is_descending else self._sequence

    def any_sequence(self) -> int:
        """Return a sequence that may be older than those of deletions."""
        drawn = self.rng.randint(0, self._sequence)
        return -drawn if self.drawn.is_descending else drawn

    def arrow(self, handle: DynamicTable, rows: Sequence[Row], kinds: Sequence[str] | None = None) -> pa.Table:
        columns = {
            each.name: pa.array([row.get(each.id) for row in rows], handle.arrow_schema.field(each.name).type)
            for each in handle.schema.fields
        }
        if kinds is not None:
            columns[self.drawn.row_kind] = pa.array(kinds, pa.string())
        return pa.table(columns)

    # --- commits ------------------------------------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        self._numbers += 1
        return {"commit_user": f"user-{self._numbers % 3}", "commit_identifier": self._numbers}

    def met(self, move: str) -> None:
        """Count a move, or the answer of a reader."""
        self.pairs.move_made(self.drawn, move, self.last)
        self.last = move

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def commit(
        self,
        what: str,
        act: Act,
        change: Callable[[], None],
        *,
        tracked: bool = True,
        handle: DynamicTable | None = None,
        may_be_interrupted: bool = True,
        identity: dict[str, Any] | None = None,
        rolls_back_to: int | None = None,
        is_repeatable: bool = True,
    ) -> bool:
        """Do something that may commit, and change the model if it is not refused. Returns whether it committed."""
        identity, verb = identity or self.identity(), what.partition(" ")[0]
        handle = handle or self.handle()
        self.told.append(f"{identity['commit_identifier']}: {what} under schema {handle.schema.id}")
        is_interrupted = may_be_interrupted and self._is_unlucky() and handle.schema.id == self.observed().schema.id
        if is_interrupted and self.interrupt is not None:
            made = self.interrupted(act, identity, change)
        else:
            try:
                made = act(handle, identity)
            except REFUSALS as refusal:
                if "Committed: yes" in str(refusal):
                    raise
                text = str(refusal).removeprefix("table game.t: ")
                self.pairs.move_refused(self.drawn, verb, text[:150])
                self.told[-1] += f" (refused: {text[:60]})"
                return False
            self.met(verb)
            change()
        if not tracked and made is not None:
            self.leave_streams_behind()
        if made is not None and rolls_back_to is not None:
            counting = self.committed_by[rolls_back_to]
            # A commit may have been made again, and count again by its first snapshot.
            known = {each.identity["commit_identifier"] for each in counting}
            gone = [*self.taken_back, *(each for each in self.committed if each.snapshot_id > rolls_back_to)]
            self.taken_back = [each for each in gone if each.identity["commit_identifier"] not in known]
            self.committed = list(counting)
        if isinstance(made, Snapshot) and is_repeatable:
            schema_id = self.observed().schema.id
            columns = {each.name: each.id for each in handle.schema.fields}
            self.committed.append(Committed(what, act, identity, change, tracked, columns, schema_id, made.id))
        self.note()
        return made is not None

    def forget_streams(self) -> None:
        """Begin all streams again, since the table was written anew."""
        self.followers.clear()
        self.waiting.clear()
        self.outside = None

    def leave_streams_behind(self) -> None:
        """Begin streams again that lack a commit, but for those that complete changes by what they have read."""
        for followers in (self.followers, self.waiting):
            followers[:] = [each for each in followers if each.outlives_untracked_commits]
            for each in followers:
                each.is_behind = True
        self.outside = None

    def interrupted(self, act: Act, identity: dict[str, Any], change: Callable[[], None] | None) -> Snapshot | None:
        """Act in a process that is interrupted, while others may act."""
        assert self.interrupt is not None
        interrupt, self.interrupt = self.interrupt, None
        self.waiting, self.followers = self.followers, []
        made = interrupt(act, identity, change)
        self.interrupt = interrupt
        self.followers, self.waiting = self.waiting, []
        return made

    def _is_unlucky(self) -> bool:
        # Where a sequence decides, a row that comes late may meet a deletion that a compaction has forgotten.
        return self.drawn.sequence is None and self.rng.random() < 0.3

    def note(self) -> None:
        """Remember the rows of the snapshots that were made since the last call."""
        newest = self.handles[0].inspect.latest_snapshot_id() or 0
        for snapshot_id in range(max(self.past, default=0) + 1, newest + 1):
            self.past[snapshot_id] = self.model.copy()
            self.committed_by[snapshot_id] = list(self.committed)

    def keep_past(self) -> None:
        """Forget the rows of snapshots that have expired."""
        earliest = self.observed().inspect.earliest_snapshot_id() or 0
        self.past = {number: rows for number, rows in self.past.items() if number >= earliest}

    def retained(self) -> list[int]:
        found: list[int] = self.handles[0].inspect.snapshots()["snapshot_id"].to_pylist()
        return sorted(set(found) & set(self.past))

    def fail(self, what: str, found: object, expected: object) -> None:
        story = "\n".join(self.told)
        message = f"{what}\nfound    {found}\nexpected {expected}\n{story}"
        raise DifferenceError(message)
