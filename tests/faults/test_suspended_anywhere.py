"""A writer is suspended before any of its I/Os while others commit and expire what it knew, then resumes.

Whatever it reports has to be true: a commit that it acknowledges is there, once; one that it refuses is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from storage_lib import AddColumn, DynamicTable, MemoryCatalog, NotFoundError, StorageError
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.crash_points import named
from tests.support.deep_tests import crossed, thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, NAME, applied, content, rows, streamed
from tests.support.sleepy_storage import SleepyStorage

OTHERS = {f"b {number} 1" for number in range(100, 104)}


@dataclass(frozen=True, kw_only=True)
class Act:
    """What the suspended process does, and how its effect is seen in the rows."""

    run: Callable[[DynamicTable], object]
    happened: Callable[[set[str]], bool] | None = None


ACTS = {
    "append": Act(run=lambda table: table.append(rows("+I a 1 1")), happened=lambda found: "a 1 1" in found),
    "identified": Act(
        run=lambda table: table.append(rows("+I a 1 1"), commit_user="job", commit_identifier=3),
        happened=lambda found: "a 1 1" in found,
    ),
    "delete": Act(run=lambda table: table.delete("id = 9"), happened=lambda found: "a 9 0" not in found),
    "update": Act(run=lambda table: table.update("id = 9", {"price": 5}), happened=lambda found: "a 9 5" in found),
    "overwrite": Act(
        run=lambda table: table.overwrite(rows("+I a 7 7"), partition={"dt": "a"}),
        happened=lambda found: "a 7 7" in found,
    ),
    "compact": Act(run=lambda table: table.compact()),
    "roll back": Act(
        run=lambda table: (table.append(rows("+I a 6 6")), table.rollback_to(snapshot_id=1)),
    ),
    "expire": Act(
        run=lambda table: (table.append(rows("+I a 6 6")), table.maintenance.expire_snapshots(retain_last=1))
    ),
}


def alter(table: DynamicTable) -> object:
    return table.alter(AddColumn("note", "STRING"))


TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "key and log": (["dt", "id"], {}),
    "key": (["dt", "id"], {"log.system": "none"}),
    "counts": ([], {"log.system": "none"}),
    "append-only": ([], {"log.system": "none", "write-mode": "append-only"}),
    "deletion vectors": (["dt", "id"], {"log.system": "none", "deletion-vectors.enabled": "true"}),
}
MEANWHILE = {"all expire": (4, 1), "the last stay": (4, 3), "one more": (1, 1)}
"""Commits of the others, and how many snapshots they keep."""


def made(kind: str, files: MemoryFileIO) -> DynamicTable:
    table = created(kind, MemoryCatalog(environment=fake_environment(files)))
    table.append(rows("+I a 9 0", "+I b 9 0"))
    return table


def created(kind: str, catalog: MemoryCatalog) -> DynamicTable:
    primary_key, options = TABLES[kind]
    return catalog.create_table(
        NAME,
        COLUMNS,
        primary_key=primary_key,
        partition_by=["dt"],
        options={**({} if kind == "append-only" else {"bucket": "1"}), "lease.timeout": "1 s", **options},
    )


def go_on(*handles: DynamicTable) -> None:
    """Write by all of these, which have to be able to, and compare the log with the rows."""
    for number, handle in enumerate(handles):
        handle.append(rows(f"+I b {200 + number} 2"))
    if handles[0].log is not None:
        assert content(handles[0]) == applied(streamed(handles[0]))


@pytest.mark.parametrize(("kind", "name"), crossed(TABLES, ["append", "identified", "overwrite", "compact"]))
def test_a_writer_that_slept_while_another_engine_rolled_back_adds_to_what_is_there(kind: str, name: str) -> None:
    """Paimon deletes the newest snapshots, and its next commit has the number of one of them."""
    if kind == "key and log":
        kind = "key"  # its rollback does not know the log
    act = ACTS[name]
    for at in range(1, 500):
        files = MemoryFileIO()
        table = made(kind, files)
        woken = list[int]()

        def others(table: DynamicTable = table, files: MemoryFileIO = files, woken: list[int] = woken) -> None:
            woken.append(1)
            for change in ("b 100 1", "b 101 1"):
                reopened_in(FaultyFileIO(files), table, names=change).append(rows(f"+I {change}"))
            for number in range((table.inspect.latest_snapshot_id() or 1), 1, -1):
                files.delete(f"{table.location}/snapshot/snapshot-{number}")
            files.replace(f"{table.location}/snapshot/LATEST", b"1")
            reopened_in(FaultyFileIO(files), table, names="after").append(rows("+I b 102 1"))

        sleeper = reopened_in(SleepyStorage(files, at, others), table, names="sleeper")
        committed: bool | None = True
        try:
            act.run(sleeper)
        except StorageError as error:
            committed = error.committed
        if not woken:
            break

        late = reopened_in(FaultyFileIO(files), table, names="late")
        with named(f"I/O {at}"):
            found = content(late)
            assert {"b 9 0", "b 102 1"} <= found
            assert not {"b 100 1", "b 101 1"} & found
            assert committed is not False or act.happened is None or not act.happened(found)
            assert len(late.to_arrow()) == len(found)
            go_on(late)
    else:
        pytest.fail("it never came to an end without being suspended")


def recreate(kind: str, files: MemoryFileIO, *, commits: int) -> None:
    catalog = MemoryCatalog(environment=fake_environment(files, names=f"anew-{commits}"))
    catalog.drop_table(NAME)
    new = created(kind, catalog)
    for change in NEW_ROWS[:commits]:
        new.append(rows(f"+I {change}"))


NEW_ROWS = ["c 1 1", "c 2 1", "c 3 1", "c 4 1"]


OTHER_ACTS: dict[str, Callable[[DynamicTable], object]] = {
    "alter": alter,
    "tag": lambda table: table.tags.create("t"),
    "branch": lambda table: table.branches.create("b"),
}


@pytest.mark.parametrize(("kind", "name", "commits"), crossed(TABLES, [*ACTS, *OTHER_ACTS], [None, 0, 2, 1, 4]))
def test_a_writer_that_slept_while_its_table_was_dropped_leaves_nothing_in_a_new_one(
    kind: str, name: str, commits: int | None
) -> None:
    """``commits`` of the new table before the writer resumes; None: it is created afterwards."""
    if kind == "append-only" and name in ("delete", "update"):
        name = "append"
    if name == "expire":
        commits = commits and None  # nothing prevents the deletion of a snapshot by its number in just that moment
    act = OTHER_ACTS.get(name) or ACTS[name].run
    for at in range(1, 500):
        files = MemoryFileIO()
        table = made(kind, files)
        woken = list[int]()

        def others(files: MemoryFileIO = files, woken: list[int] = woken) -> None:
            woken.append(1)
            if commits is None:
                MemoryCatalog(environment=fake_environment(files, names="dropping")).drop_table(NAME)
            else:
                recreate(kind, files, commits=commits)

        sleeper = reopened_in(SleepyStorage(files, at, others), table, names="sleeper")
        with suppress(StorageError):
            act(sleeper)
        if not woken:
            break

        with named(f"I/O {at}"):
            catalog = MemoryCatalog(environment=fake_environment(files, names="late"))
            new = created(kind, catalog) if commits is None else catalog.load_table(NAME)
            there = set(NEW_ROWS[: commits or 0])
            assert content(new) == there
            # A process that had read nothing yet names a snapshot of the new table.
            assert all(new.context.file_store.snapshots.holds(tag.snapshot) for tag in new.tags.list())
            assert all(content(new.branches.open(branch)) <= there for branch in new.branches.list())
            assert new.inspect.latest_snapshot_id() in (None, *range(3 * len(there) + 1))
            go_on(new, catalog.load_table(NAME))
            assert content(catalog.load_table(NAME)) == there | {"b 200 2", "b 201 2"}
            with pytest.raises(NotFoundError):
                sleeper.append(rows("+I a 1 1"))
    else:
        pytest.fail("it never came to an end without being suspended")


@pytest.mark.parametrize(("kind", "name", "meanwhile"), crossed(TABLES, ACTS, MEANWHILE))
def test_what_a_suspended_writer_reports_is_true_wherever_it_was_suspended(
    kind: str, name: str, meanwhile: str
) -> None:
    if kind == "append-only" and name in ("delete", "update"):
        name = "append"  # such a table takes no other changes
    act, (commits, kept) = ACTS[name], MEANWHILE[meanwhile]
    outcomes = Counter[bool | None]()
    for at in range(1, 500):
        files = MemoryFileIO()
        table = made(kind, files)
        woken = list[int]()

        def others(table: DynamicTable = table, files: MemoryFileIO = files, woken: list[int] = woken) -> None:
            woken.append(1)
            other = reopened_in(FaultyFileIO(files), table, names="other")
            for change in sorted(OTHERS)[:commits]:
                other.append(rows(f"+I {change}"))
            other.maintenance.expire_snapshots(retain_last=kept)

        sleeper = reopened_in(SleepyStorage(files, at, others), table, names="sleeper")
        committed: bool | None = True
        try:
            act.run(sleeper)
        except StorageError as error:
            committed = error.committed
        if not woken:
            break
        outcomes[committed] += 1

        handles = (reopened_in(FaultyFileIO(files), table, names="late"), table, sleeper)
        with named(f"I/O {at}"):
            for handle in handles:
                found = content(handle)
                assert committed is None or act.happened is None or act.happened(found) == committed
                assert name == "roll back" or set(sorted(OTHERS)[:commits]) <= found
                assert len(handle.to_arrow()) == len(found), "no row is there twice"
            go_on(*handles)
    else:
        pytest.fail("it never came to an end without being suspended")
    assert outcomes[True]
    assert not outcomes[None], "the commits of expired snapshots are known"


@pytest.mark.parametrize("commits", thinned([3, 1, 4]))
def test_an_expiry_that_slept_while_its_table_was_recreated_deletes_nothing_of_the_new_one(commits: int) -> None:
    for at in range(1, 500):
        files = MemoryFileIO()
        table = made("key", files)
        for number in range(3):
            table.append(rows(f"+I a {number} 1"))
        woken = list[int]()

        def others(table: DynamicTable = table, files: MemoryFileIO = files, woken: list[int] = woken) -> None:
            woken.append(1)
            clock = table.environment.clock
            assert isinstance(clock, FakeClock)
            clock.pass_time(60)
            recreate("key", files, commits=commits)

        storage = SleepyStorage(files, at, others)
        with suppress(StorageError):
            reopened_in(storage, table, names="sleeper").maintenance.expire_snapshots(retain_last=1)
        if not woken:
            break

        operation, path = storage.calls[at - 1]
        if operation == "delete" and "/snapshot/snapshot-" in path:
            continue  # no store compares a file with what it is to be while it deletes the file by its name
        with named(f"I/O {at}: {operation} {path}"):
            late = MemoryCatalog(environment=fake_environment(files, names="late")).load_table(NAME)
            assert content(late) == set(NEW_ROWS[:commits])
            assert [len(late.to_arrow(snapshot_id=each)) for each in range(1, commits + 1)] == [*range(1, commits + 1)]
            go_on(late)
    else:
        pytest.fail("it never came to an end without being suspended")
