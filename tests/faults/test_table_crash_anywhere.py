"""Crash at the k-th operation on storage or log, for every k: no commit is lost in either store.

A new process reopens the table, commits, and repeats the commit of the crashed process. Then every acknowledged
commit and the repeated one exist once in the files and once in the log, in the same order, from any snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from storage_lib import DynamicTable, NotFoundError, StreamPosition
from storage_lib.errors import RetryableError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.breaking_log import BreakingLog
from tests.support.crash_points import CrashPoints, files_in
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import applied, content, orders, reopened, rows, streamed

BEFORE = ("+I a 1 10", "+I a 2 20", "+I b 3 30", "+U a 1 11")
"""Changes acknowledged before the first crash."""


@dataclass(frozen=True)
class Act:
    """Action of the crashing process; it results in ``content`` and logs ``changes``, in any order."""

    run: Callable[[DynamicTable], Snapshot | None]
    content: frozenset[str]
    changes: frozenset[str]


def _drop(table: DynamicTable) -> Snapshot | None:
    return table.maintenance.drop_partitions([{"dt": "b"}], commit_user="mortal", commit_identifier=1)


ACTS = {
    "append": Act(
        lambda table: table.append(
            rows("+U a 1 12", "-D a 2 20", "+I b 4 40"), commit_user="mortal", commit_identifier=1
        ),
        frozenset({"a 1 12", "b 3 30", "b 4 40"}),
        frozenset({"+U a 1 12", "-D a 2 20", "+I b 4 40"}),
    ),
    "tracked overwrite": Act(
        lambda table: table.overwrite(rows("+I a 1 11", "+I a 5 50"), commit_user="mortal", commit_identifier=1),
        frozenset({"a 1 11", "a 5 50", "b 3 30"}),
        frozenset({"-D a 2 20", "+I a 5 50"}),
    ),
    "untracked overwrite": Act(
        lambda table: table.overwrite(
            rows("+I a 6 60"), change_tracking=False, commit_user="mortal", commit_identifier=1
        ),
        frozenset({"a 6 60", "b 3 30"}),
        frozenset(),
    ),
    "compact": Act(
        lambda table: table.compact(commit_user="mortal", commit_identifier=1),
        frozenset({"a 1 11", "a 2 20", "b 3 30"}),
        frozenset(),
    ),
    "drop": Act(_drop, frozenset({"a 1 11", "a 2 20"}), frozenset()),
}
READS = frozenset({"exists", "list_directory", "log.is_committed", "open_input", "read_bytes"})
UNTOUCHED = frozenset({"a 1 11", "a 2 20", "b 3 30"})


def _table() -> DynamicTable:
    # A short lease, so that a takeover after a crash needs few polls.
    table = orders(None, **{"bucket": "2", "lease.timeout": "5 s"})
    table.append(rows(*BEFORE[:3]))
    table.append(rows(*BEFORE[3:]))
    return table


def _mortal(table: DynamicTable, *faults: Fault) -> tuple[DynamicTable, FaultyFileIO]:
    storage = FaultyFileIO(table.environment.file_io, *faults)
    return reopened_in(storage, table, names="mortal"), storage


def _every_death(act: Act, fresh: Callable[[], DynamicTable] = _table) -> Iterator[tuple[str, DynamicTable]]:
    """Yield the table after each crash that leaves the stores differently: before the first operation, ..., at the end.

    Crashes at operations between two of these leave what the next one leaves.
    """
    count, places = _places(act, fresh())
    faults = [Fault(FaultKind.CRASH_BEFORE, at=at) for at in places]
    for fault in [*faults, Fault(FaultKind.CRASH_AFTER, at=count)]:
        table = fresh()
        dying, storage = _mortal(table, fault)
        with pytest.raises(SimulatedCrash):
            act.run(dying)
        yield f"{fault.kind.name} {fault.at} of {count}: {storage.calls[-1]}", table


def _places(act: Act, table: DynamicTable) -> tuple[int, list[int]]:
    """Return the number of operations of the action, and those before which the files, the log or the clock changed."""
    places: list[int] = []
    files, clock = table.environment.file_io, table.environment.clock
    assert isinstance(files, MemoryFileIO)

    def state() -> tuple[object, ...]:
        logged = [operation for operation, _ in storage.calls[:-1] if operation not in READS | WRITES]
        return files_in(files), len(logged), clock.monotonic()

    storage = CrashPoints(files, state=state, changed=places.append)
    act.run(reopened_in(storage, table, names="mortal"))
    return len(storage.calls), places


def _assert_sound(table: DynamicTable, expected: frozenset[str], changes: list[frozenset[str]], when: str) -> None:
    """Check files and log; ``changes``: the logged changes of each tracked commit, in order, at most one per key."""
    assert content(table) == set(expected), when
    log = streamed(table)
    told = [change for group in changes for change in group]
    assert sorted(log) == sorted(told), when
    for key in {_key(change) for change in told}:
        assert [each for each in log if _key(each) == key] == [each for each in told if _key(each) == key], when


def _key(change: str) -> tuple[str, ...]:
    return tuple(change.split()[1:3])


def _assert_every_start_leads_to(table: DynamicTable, expected: frozenset[str], when: str) -> None:
    for snapshot_id in table.inspect.snapshots().column("snapshot_id").to_pylist():
        start = StreamPosition(snapshot_id=snapshot_id, split_index=0)
        assert applied(streamed(table, start)) == expected, f"{when}, from snapshot {snapshot_id}"


@pytest.mark.parametrize(
    ("name", "times_out"), [*((name, False) for name in ACTS), ("append", True), ("tracked overwrite", True)]
)
def test_whatever_dies_the_next_process_finds_everything_once(name: str, times_out: bool) -> None:  # noqa: FBT001
    act = ACTS[name]
    committed_before = [frozenset(BEFORE[:3]), frozenset(BEFORE[3:])]
    for when, table in _every_death(act):
        if times_out:
            clock = table.environment.clock
            assert isinstance(clock, FakeClock)
            clock.pass_time(3600)
        survivor = reopened(table)
        has_happened = survivor.context.file_store.snapshots.find_commit("mortal", 1) is not None

        survivor.append(rows("+I c 9 90"), commit_user="survivor", commit_identifier=1)

        told = [act.changes] if has_happened else []
        was = act.content if has_happened else UNTOUCHED
        _assert_sound(survivor, was | {"c 9 90"}, [*committed_before, *told, frozenset({"+I c 9 90"})], when)
        if act.changes or not has_happened:
            _assert_every_start_leads_to(survivor, was | {"c 9 90"}, when)

        again = reopened(table)
        first = _or_not_found(act, again)
        assert _or_not_found(act, reopened(table)) == first, when
        told = [frozenset({"+I c 9 90"}), *([] if has_happened else [act.changes])]
        before = [*committed_before, *([act.changes] if has_happened else [])]
        _assert_sound(again, act.content | {"c 9 90"}, [*before, *told], when)
        assert again.context.leases.holder() is None, when


def _or_not_found(act: Act, table: DynamicTable) -> Snapshot | None:
    try:
        return act.run(table)
    except NotFoundError:
        pytest.fail("a replay of a drop has to find its commit before it looks for the partition")


def test_whatever_dies_while_it_mends_the_log_the_next_process_finds_everything_once() -> None:
    """The broker aborted a transaction after its snapshot; the process that republishes its records crashes as well."""
    lost = ("+U a 1 12", "+I b 5 50")
    lost_and_more = Act(
        lambda table: table.append(rows("-D a 2 20"), commit_user="mortal", commit_identifier=1),
        frozenset({"a 1 12", "b 3 30", "b 5 50"}),
        frozenset({"-D a 2 20"}),
    )
    committed_before = [frozenset(BEFORE[:3]), frozenset(BEFORE[3:]), frozenset(lost)]
    for death, (when, table) in enumerate(_every_death(lost_and_more, lambda: _with_a_lost_transaction(*lost))):
        survivor = reopened(table)
        has_happened = survivor.context.file_store.snapshots.find_commit("mortal", 1) is not None

        survivor.append(rows("+I c 9 90"), commit_user="survivor", commit_identifier=1)
        lost_and_more.run(reopened(table))

        own, other = frozenset({"-D a 2 20"}), frozenset({"+I c 9 90"})
        told = [own, other] if has_happened else [other, own]
        expected = lost_and_more.content | {"c 9 90"}
        _assert_sound(survivor, expected, [*committed_before, *told], when)
        if death % 5 == 0:
            _assert_every_start_leads_to(survivor, expected, when)


def _with_a_lost_transaction(*changes: str) -> DynamicTable:
    table = _table()
    assert table.log is not None
    log = BreakingLog(table.log)
    dying = reopened(table, log)
    write_context = dying.new_write().begin(commit_user="lost")
    with dying.new_write().open_task(write_context) as write:
        write.write(rows(*changes))
        message = write.prepare_commit()
        log.dies_before_commit = True
        with pytest.raises(SimulatedCrash):
            dying.new_write().commit(write_context, [message], 1)
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(3600)
    return table


@pytest.mark.parametrize("name", ["append", "tracked overwrite"])
@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER])
def test_an_outage_anywhere_is_survived_by_doing_it_again(name: str, kind: FaultKind) -> None:
    act = ACTS[name]
    table, storage = _mortal(_table())
    act.run(table)
    calls = storage.calls
    for at, (operation, _) in enumerate(calls, start=1):
        if kind is FaultKind.LOSE_ANSWER and operation in READS:
            continue  # it fails as with an outage
        table = _table()
        when = f"{kind.name} {at}: {calls[at - 1]}"
        try:
            act.run(_mortal(table, Fault(kind, at=at))[0])
        except RetryableError:
            act.run(reopened(table))
        # The next writer logs the changes that could not be logged after the snapshot was created.
        passer_by = reopened(table)
        passer_by.new_write().abort(passer_by.new_write().begin(commit_user="passer-by"), [])
        _assert_sound(table, act.content, [frozenset(BEFORE[:3]), frozenset(BEFORE[3:]), act.changes], when)
