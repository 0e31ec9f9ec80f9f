"""In = accepted + rejected, to the record: over random lives of a table, and whatever I/O a commit crashes at."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.errors import StorageError
from tests.support.crash_points import CrashPoints, copy_of_table, files_in, named
from tests.support.deep_tests import thinned
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, orders, reopened
from tests.support.rejecting_source import check_each_record_once, files_of_rejected, read_on, reingest_some

TABLES: dict[str, Callable[[], DynamicTable]] = {
    "key, no log": lambda: orders(None, **{"log.system": "none"}),
    "key, log": lambda: orders(None, **{"lease.timeout": "5 s"}),
    "key, log first": lambda: orders(None, **{"lease.timeout": "5 s", "log.consistency": "eventual"}),
    "append-only": lambda: MemoryCatalog(environment=fake_environment()).create_table(
        "shop.orders", COLUMNS, partition_by=["dt"], options={"log.system": "none"}
    ),
}
MOVES = ("read", "read", "read", "reingest", "rollback", "branch", "tag", "expire", "clean", "compact")
STEPS = 25


def _faults(chance: random.Random) -> list[Fault]:
    if chance.random() > 0.4:
        return []
    kind = chance.choice([FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER, FaultKind.LOSE_ANSWER, FaultKind.TEAR])
    return [Fault(kind, at=chance.randrange(1, 60))]


def _move(move: str, actor: DynamicTable, step: int, chance: random.Random) -> None:
    snapshots = actor.inspect.snapshots()["snapshot_id"].to_pylist()
    if move == "read":
        read_on(actor, chance.randrange(1, 25), identifier=step)
    elif move == "reingest":
        refused = actor.inspect.rejected()["offset"].to_pylist()
        reingest_some(actor, chance.sample(refused, k=len(refused) // 2), identifier=step)
    elif move == "rollback" and snapshots:
        actor.rollback_to(snapshot_id=chance.choice(snapshots), change_tracking=False)
    elif move == "branch" and snapshots:
        actor.branches.create(f"b{step}")
        read_on(actor.branches.open(f"b{step}"), 7)
    elif move == "tag" and snapshots:
        actor.tags.create(f"t{step}")
    elif move == "expire":
        actor.maintenance.expire_snapshots(retain_last=chance.randrange(1, 4))
    elif move == "clean":
        actor.maintenance.remove_orphan_files(older_than=timedelta(0))
    elif move == "compact":
        actor.compact()


@pytest.mark.parametrize("seed", thinned(range(16)))
@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_each_record_of_its_source_once_over_a_random_life_with_kills(name: str, seed: int) -> None:
    """A log that is written first may have rows of a killed commit, so nobody is killed there."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311  a drawn life, no secret
    table = TABLES[name]()
    for step in range(STEPS):
        faults = [] if name == "key, log first" else _faults(chance)
        actor = reopened_in(FaultyFileIO(table.environment.file_io, *faults), table, names=f"actor{step}x")
        try:
            _move(chance.choice(MOVES), actor, step, chance)
        except SimulatedCrash:
            pass
        except StorageError:
            if not faults:
                raise
        _pass_time(table)
        table = reopened(table)
        check_each_record_once(table)

    for tag in table.inspect.system_table("tags")["tag_name"].to_pylist():
        table.rollback_to(tag=tag, change_tracking=False)
        check_each_record_once(table)
    for branch in table.inspect.system_table("branches")["branch_name"].to_pylist():
        check_each_record_once(table.branches.open(branch))
    read_on(table, 5)
    table.maintenance.remove_orphan_files(older_than=timedelta(0))
    check_each_record_once(table)


def _pass_time(table: DynamicTable) -> None:
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(30)


def _resolve(table: DynamicTable) -> None:
    reingest_some(table, range(4, 14), identifier=1)


def _expire(table: DynamicTable) -> None:
    table.maintenance.expire_snapshots(retain_last=1)


ACTS: dict[str, Callable[[DynamicTable], object]] = {
    "append": lambda table: read_on(table, 9, identifier=1),
    "resolve": _resolve,
    "expire": _expire,
}


def _lived() -> DynamicTable:
    table = TABLES["key, no log"]()
    for _ in range(7):
        read_on(table, 4)  # with the next one, there are enough files to merge
    return table


def _every_crash(act: Callable[[DynamicTable], object]) -> Iterator[tuple[str, DynamicTable]]:
    """Yield the table after a crash before each I/O of the action that left it differently."""
    table = _lived()
    files = table.environment.file_io
    copies: list[tuple[str, DynamicTable]] = []

    def changed(at: int) -> None:
        copies.append((f"I/O {at}: {storage.calls[-1]}", copy_of_table(table)))

    storage = CrashPoints(files, state=lambda: files_in(files), changed=changed)  # type: ignore[arg-type]
    act(reopened_in(storage, table, names="mortal"))
    yield from copies
    yield "the end", table


@pytest.mark.parametrize("name", ACTS)
def test_a_commit_that_crashes_anywhere_is_repeated_once_and_leaves_no_file(name: str) -> None:
    for when, left in _every_crash(ACTS[name]):
        with named(when):
            _pass_time(left)
            check_each_record_once(reopened(left))

            ACTS[name](reopened(left))

            survivor = reopened(left)
            first = check_each_record_once(survivor)
            ACTS[name](reopened(left))
            assert check_each_record_once(survivor) == first
            survivor.maintenance.expire_snapshots(retain_last=1)
            survivor.maintenance.remove_orphan_files(older_than=timedelta(0))
            assert check_each_record_once(survivor) == first
            assert len(files_of_rejected(survivor)) <= 1 + 8
