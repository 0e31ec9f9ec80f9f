"""Interrupted commits: the process is suspended while others play on, is killed, or an I/O of it fails.

Whatever it reports has to be true: a commit that it acknowledges is there, and one that it refuses is not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from storage_lib import DynamicTable, InvalidInputError, StorageError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from tests.game.player import REFUSALS, Act, Game
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.sleepy_storage import SleepyStorage

IO_MAX = 40
"""An append to a small table has about 30 I/Os."""
COMMITTING_SHARE = 0.4
"""Share of the suspensions that come just before the process creates its snapshot."""
TRANSACTION_TIMEOUT_SECONDS = 1000
FAILURES = (*FaultKind, *[None] * len(FaultKind))
"""None: the process is suspended."""


def _nothing() -> None:
    """Change no rows."""


@dataclass
class Interruption:
    """One commit in a process of its own. ``others`` makes some moves; ``change`` changes the model.

    ``fails_only``: the process is not suspended. An overwrite replaces what is there when it begins, so that rows that
    others write meanwhile stay, and a bag counts a row that two remove at once twice; the model knows neither.
    """

    game: Game
    others: Callable[[], None]
    act: Act
    identity: dict[str, Any]
    change: Callable[[], None] = _nothing
    fails_only: bool = False
    is_applied: bool = False
    comes_back: bool = False

    def __post_init__(self) -> None:
        self.storage = FaultyFileIO(self.game.files)
        self.life = self.game.life
        self.has_acknowledged = False

    def run(self) -> Snapshot | None:
        """Commit, and change the model if the commit is found afterwards."""
        kind = self.game.rng.choice(FAILURES[: len(FaultKind)] if self.fails_only else FAILURES)
        at = self.game.rng.randint(1, IO_MAX)
        self._tell(kind, at)
        table = self._process(kind, at)
        try:
            self.has_acknowledged = self.act(table, self.identity) is not None
            committed: bool | None = True
        except SimulatedCrash:
            committed = None
        except StorageError as error:
            committed = error.committed
            self.game.told[-1] += f" ({type(error).__name__}: {str(error)[:100]})"
        self._restore_log()
        if kind is not None and self._can_be_repeated() and self.game.rng.random() < 0.5:
            committed = self._repeated(table, committed)
        made = self._found()
        if committed is False and made is not None and not self.comes_back:
            self.game.fail("a commit that was refused was made", made.id, None)
        if self.game.life != self.life:
            if made is not None:
                self.game.fail("a commit to a dropped table was made in the new one", made.id, None)
            return None
        if self.has_acknowledged and made is None and not self.is_applied:
            self.game.fail("an acknowledged commit is not there", None, self.identity)
        if self.game.drawn.is_log_first:
            self._adopt(committed=committed)
        elif made is not None:
            self._apply()
        return made

    def _can_be_repeated(self) -> bool:
        """Whether it does the same again: rows that are in an eventual log are there for a repeated write to read."""
        return not self.game.drawn.is_log_first or self.game.told[-1].split()[1] in ("append", "upsert")

    def _repeated(self, table: DynamicTable, committed: bool | None) -> bool | None:  # noqa: FBT001  private
        """Repeat the commit under its identity, in the same process if it is alive or in a new one."""
        is_alive = committed is not None and self.game.rng.random() < 0.5
        self.storage.faults = ()
        before = self._found()
        self.game.told[-1] += f" (repeated by {'its' if is_alive else 'another'} process)"
        try:
            self.act(table if is_alive else self.game.newest(), self.identity)
        except REFUSALS as refusal:
            if before is not None or committed:
                self.game.fail("a repeated commit is refused", refusal, before and before.id)
            self.game.told[-1] += f" (refused: {str(refusal)[:60]})"
            return committed
        after = self._found()
        if before is not None and (after is None or after.id != before.id):
            self.game.fail("a repeated commit is another one", after and after.id, before.id)
        self.game.met("repeated after a failure")
        return True

    def _adopt(self, *, committed: bool | None) -> None:
        """Take over the rows that the log got before the process failed: of each key a version before or after it."""
        model = self.game.model
        before = model.copy()
        if committed is not False:
            self.change()
        table = self.game.newest()
        ids = {each.name: each.id for each in table.schema.fields}
        rows = [{ids[name]: value for name, value in row.items()} for row in table.to_arrow().to_pylist()]
        found = {model.key_of(row): row for row in rows}
        for key in {*before.versions, *model.versions, *found}:
            old, new = before.versions.get(key, []), model.versions.get(key, [])
            lasts = [new] if committed else [old, *(new[:count] for count in range(len(old), len(new))), new]
            merged = [model.merged(versions) for versions in lasts]
            # A version from before a column was added, or dropped, has other columns.
            if found.get(key) not in [row and {column: row.get(column) for column in ids.values()} for row in merged]:
                self.game.fail(f"after a failed write, key {key}", found.get(key), lasts)
        model.versions = {key: [("+I", row)] for key, row in found.items()}

    def run_upkeep(self) -> None:
        """Do something that changes no rows, which may fail in any way."""
        kind = self.game.rng.choice(FAILURES)
        at = self.game.rng.randint(1, IO_MAX)
        self._tell(kind, at)
        # A request that deletes by a name, and comes after the table was recreated, would delete the new table's.
        self.game.keeps_table = True
        try:
            self.act(self._process(kind, at), self.identity)
        except InvalidInputError as error:
            self.game.fail("upkeep is refused as if its caller had erred", error, None)
        except (SimulatedCrash, StorageError):
            pass
        self.game.keeps_table = False

    def _tell(self, kind: FaultKind | None, at: int) -> None:
        name = "suspended" if kind is None else kind.name
        self.game.told[-1] += f" ({name} at I/O {at})"
        self.game.met(name)

    def _process(self, kind: FaultKind | None, at: int) -> DynamicTable:
        if kind is None:
            sleepy = SleepyStorage(self.game.files, 0, self._meanwhile)
            table = self._opened(sleepy)
            if self.game.rng.random() < COMMITTING_SHARE:
                sleepy.commits_at = 1
            else:
                sleepy.at = len(sleepy.calls) + at
            return table
        table = self._opened(self.storage)
        self.storage.faults = (Fault(kind, at=at),)
        return table

    def _opened(self, storage: FaultyFileIO) -> DynamicTable:
        return self.game.opened_catalog(storage, f"process-{self.game.number()}").load_table("game.t")

    def _meanwhile(self) -> None:
        if self._found() is not None:
            self._apply()
            self.game.note()
        self.others()
        # A commit that is made again may come back with its rows, by a rollback to a snapshot that has it, or because
        # another process repeats it.
        self.comes_back = not self.is_applied and self._found() is not None
        self.is_applied = self.is_applied or self.comes_back

    def _found(self) -> Snapshot | None:
        return self.game.observed().inspect.find_commit(
            self.identity["commit_user"], self.identity["commit_identifier"]
        )

    def _apply(self) -> None:
        if not self.is_applied:
            self.is_applied = True
            self.change()

    def _restore_log(self) -> None:
        """Let the broker abort what the process left open, and the next writer complete the log."""
        table = self.game.newest()
        if self.game.drawn.is_log_first:
            table.maintenance.tier_log()
        elif table.log is not None:
            self.game.clock.pass_time(TRANSACTION_TIMEOUT_SECONDS)
            builder = table.new_write()
            builder.abort(builder.begin(commit_user="passer-by"), [])
