"""A writer is suspended before a random I/O while others live a random life of the table, then it resumes.

Others commit, compact, expire, alter, rescale, roll back (as this library or Paimon does), and drop and recreate it.
What the writer reports is true, nobody finds the table damaged, and a repetition under its identity counts once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from storage_lib import DynamicTable, MemoryCatalog, SetOption, StorageError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.faults.test_suspended_anywhere import ACTS, TABLES, created, made
from tests.support.crash_points import named
from tests.support.deep_tests import thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import NAME, applied, content, rows, streamed
from tests.support.sleepy_storage import SleepyStorage

MOVES = (
    ["append"] * 6 + ["expire"] * 4 + ["compact", "delete", "overwrite", "alter", "rescale", "roll back", "cut", "drop"]
)


@dataclass
class SuspendedLife:
    """``rows`` are those of others; ``is_new``: the table was dropped and recreated; ``undone``: it was rolled back."""

    drawn: random.Random
    rows: set[str] = field(default_factory=lambda: {"b 9 0"})
    told: list[str] = field(default_factory=list)
    is_new: bool = False
    undone: bool = False
    rescaled: bool = False
    processes: int = 0

    def __post_init__(self) -> None:
        self.kind = self.drawn.choice(sorted(TABLES))
        self.files = MemoryFileIO()
        self.table = made(self.kind, self.files)

    def fresh(self) -> DynamicTable:
        self.processes += 1
        return MemoryCatalog(environment=fake_environment(self.files, names=f"p{self.processes}")).load_table(NAME)

    def run(self) -> None:
        """Suspend one act, and compare what it reports with what is there."""
        name = self.drawn.choice(["append", "identified", "identified", "overwrite", "compact", "expire", "roll back"])
        act = ACTS[name]
        at = self.drawn.randrange(1, 45)
        self.told.append(f"{self.kind}: {name} sleeps before I/O {at}")
        sleeper = reopened_in(SleepyStorage(self.files, at, self.live), self.table, names="sleeper")
        committed: bool | None = True
        try:
            act.run(sleeper)
        except StorageError as error:
            committed = error.committed
            self.told.append(f"{type(error).__name__}, committed: {committed}")
        with named("; ".join(self.told)):
            late = self.fresh()
            found = content(late)
            assert len(late.to_arrow()) == len(found), "no row is there twice"
            assert name == "roll back" or {row for row in found if row.startswith("b ")} == self.rows
            has_happened = act.happened is not None and act.happened(found)
            assert not (has_happened and (committed is False or self.is_new))
            assert has_happened or committed is not True or act.happened is None or self.undone or self.is_new
            self.go_on(name, late)

    def go_on(self, name: str, late: DynamicTable) -> None:
        if name == "identified" and not self.is_new:
            for _ in range(2):
                ACTS[name].run(self.fresh())
                self.append(self.fresh())
                self.fresh().maintenance.expire_snapshots(retain_last=1)
            assert sorted(row for row in texts(self.fresh()) if row == "a 1 1") == ["a 1 1"]
        for number in range(2):
            self.fresh().append(rows(f"+I c {number} 1"))
        assert {"c 0 1", "c 1 1"} <= content(self.fresh())
        self.fresh().maintenance.expire_snapshots(retain_last=1)
        assert {"c 0 1", "c 1 1"} <= content(self.fresh())
        if late.log is not None and not (self.undone or self.rescaled):
            assert content(self.fresh()) == applied(streamed(self.fresh()))

    def live(self) -> None:
        """Do what others do meanwhile, which takes a while."""
        clock = self.table.environment.clock
        assert isinstance(clock, FakeClock)
        clock.pass_time(60)
        for _ in range(self.drawn.randrange(1, 9)):
            move = self.drawn.choice(MOVES)
            self.told.append(move)
            with named("; ".join(self.told)):
                getattr(self, move.replace(" ", "_"))(self.fresh())

    def append(self, table: DynamicTable) -> None:
        row = f"b {100 + len(self.told)} 1"
        table.append(rows(f"+I {row}"))
        self.rows.add(row)

    def expire(self, table: DynamicTable) -> None:
        table.maintenance.expire_snapshots(retain_last=self.drawn.choice([1, 1, 2, 3]))

    def compact(self, table: DynamicTable) -> None:
        table.compact(full=True)

    def delete(self, table: DynamicTable) -> None:
        if self.rows and self.kind != "append-only":
            row = self.drawn.choice(sorted(self.rows))
            table.delete(f"dt = 'b' AND id = {row.split()[1]}")
            self.rows.remove(row)

    def overwrite(self, table: DynamicTable) -> None:
        row = f"b {200 + len(self.told)} 1"
        table.overwrite(rows(f"+I {row}"), partition={"dt": "b"})
        self.rows = {row}

    def alter(self, table: DynamicTable) -> None:
        table.alter(SetOption("snapshot.time-retained", f"{len(self.told)} h"))

    def rescale(self, table: DynamicTable) -> None:
        if self.kind != "append-only":
            table.rewrite(options={"bucket": str(self.drawn.choice([1, 2, 3]))})
            self.rescaled = True

    def roll_back(self, table: DynamicTable) -> None:
        earliest = table.inspect.earliest_snapshot_id()
        if earliest is None or self.rescaled:
            return
        table.rollback_to(snapshot_id=earliest, change_tracking=False)
        self.undone = True
        self.rows = {row for row in content(self.fresh()) if row.startswith("b ")}

    def cut(self, table: DynamicTable) -> None:
        """Roll back as Paimon does: delete the newest snapshots, whose numbers are used again."""
        earliest, newest = table.inspect.earliest_snapshot_id(), table.inspect.latest_snapshot_id()
        if earliest is None or newest is None or table.log is not None or self.rescaled:
            return
        for number in range(newest, earliest, -1):
            self.files.delete(f"{table.location}/snapshot/snapshot-{number}")
        self.files.replace(f"{table.location}/snapshot/LATEST", str(earliest).encode())
        self.undone = True
        self.rows = {row for row in content(self.fresh()) if row.startswith("b ")}

    def drop(self, _: DynamicTable) -> None:
        self.processes += 1
        catalog = MemoryCatalog(environment=fake_environment(self.files, names=f"p{self.processes}"))
        catalog.drop_table(NAME)
        created(self.kind, catalog)
        self.rows, self.is_new, self.rescaled = set(), True, False


def texts(table: DynamicTable) -> list[str]:
    return [f"{row['dt']} {row['id']} {row['price']}" for row in table.to_arrow().to_pylist()]


@pytest.mark.parametrize("seed", thinned(range(300), 30))
def test_a_suspended_writer_does_no_harm_whatever_others_do_meanwhile(seed: int) -> None:
    SuspendedLife(random.Random(seed)).run()  # noqa: S311  seeded chance
