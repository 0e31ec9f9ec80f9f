"""Crash at the k-th I/O, for every k: after reopening, every acknowledged commit is complete.

The interrupted history: appends with updates and deletes, compactions, an overwrite, an expiry, and enough commits
that manifests are merged. A crash also loses data that the process had written but not synced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from obstore.store import MemoryStore

from storage_lib.errors import CommitOutcomeUnknownError, StorageError
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.store import FileStore
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.remote.object_store_file_io import ObjectStoreFileIO
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.options.external_paths import PATHS_OPTION, STRATEGY_OPTION, declared_directories
from storage_lib.schema.types.row_kind import RowKind
from tests.support.crash_points import CrashPoints, copy_of_files, copy_of_objects, named, objects_in
from tests.support.deep_tests import thinned
from tests.support.every_file import every_file, needed_by_snapshots
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.storages import objects_in_memory
from tests.support.stored_table import Rows, StoredTable, committable_of, orders_schema

OPTIONS = {"manifest.merge-min-count": "3", "bucket": "2"}
OUTSIDE = "s3://cold/t"
OPTIONS_OUTSIDE = {**OPTIONS, PATHS_OPTION: OUTSIDE, STRATEGY_OPTION: "entropy-inject"}
USER = "pipeline"
IN_OBJECTS = "s3://lake/db.db/t"


@dataclass(frozen=True)
class Step:
    """One commit of the history; its position in the list is its identifier."""

    rows: Rows = ()
    kinds: tuple[RowKind, ...] | None = None
    overwrites: str | None = None
    compacts: bool = False
    expires: bool = False


LIFE = (
    Step(rows=[("a", 1, "x"), ("a", 2, "y"), ("b", 1, "z")]),
    Step(rows=[("a", 1, "x2"), ("a", 2, "y")], kinds=(RowKind.UPDATE_AFTER, RowKind.DELETE)),
    Step(compacts=True),
    Step(rows=[("a", 3, "w"), ("b", 1, "z2")]),
    Step(rows=[("b", 9, "reprocessed")], overwrites="b"),
    Step(expires=True),
    Step(rows=[("a", 1, "x3")]),
    Step(compacts=True),
)


def rows_after() -> list[list[tuple[object, ...]]]:
    """Return the expected table after each number of steps, computed with a dictionary."""
    model: dict[tuple[object, ...], tuple[object, ...]] = {}
    states: list[list[tuple[object, ...]]] = [[]]
    for step in LIFE:
        if step.overwrites is not None:
            model = {key: row for key, row in model.items() if key[0] != step.overwrites}
        for row, kind in zip(step.rows, step.kinds or [RowKind.INSERT] * len(step.rows), strict=True):
            key = tuple(row[:2])
            if kind is RowKind.DELETE:
                model.pop(key)
            else:
                model[key] = tuple(row)
        states.append(sorted(model.values(), key=repr))
    return states


EXPECTED = rows_after()


@dataclass
class Life:
    """Pipeline that resumes after the last step known to be complete; ``acknowledged`` counts these steps."""

    file_io: FileIO
    names: str
    acknowledged: int = field(default=0)
    root: str = "/warehouse/db.db/t"
    options: Mapping[str, str] = field(default_factory=lambda: OPTIONS)

    def __post_init__(self) -> None:
        environment = fake_environment(self.file_io, names=self.names)
        self.table = StoredTable(orders_schema(dict(self.options)), environment, root=self.root)

    def run(self) -> None:
        while self.acknowledged < len(LIFE):
            self.take(self.acknowledged, LIFE[self.acknowledged])
            self.acknowledged += 1

    def take(self, identifier: int, step: Step) -> None:
        store = self.table.store
        if step.expires:
            store.expire.expire(retain_max=2)
            return
        if store.snapshots.find_commit(USER, identifier) is not None:
            return
        if step.compacts:
            messages = tuple(self.table.compaction_messages())
        else:
            messages = self.table.messages(step.rows, step.kinds, overwrite=step.overwrites is not None)
        committable = committable_of(messages, user=USER, identifier=identifier)
        try:
            if step.overwrites is None:
                store.commit.commit(committable)
            else:
                store.commit.overwrite(committable, partition_filter=col("dt") == step.overwrites)
        except CommitOutcomeUnknownError:
            raise
        except StorageError:
            with suppress(StorageError):
                store.abort(messages)
            raise


def test_the_life_without_faults_is_as_expected() -> None:
    life = Life(MemoryFileIO(), "sound")
    life.run()
    assert life.table.rows() == EXPECTED[-1]
    assert life.table.store.snapshots.latest_id() == len(LIFE) - 1


@dataclass(frozen=True)
class Crash:
    """What a crash leaves: the stored files, and what the process had been told and had attempted."""

    files: FileIO
    acknowledged: int
    calls: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"I/O {len(self.calls)}, {self.calls[-1]}"


def crashes_at_writes() -> list[Crash]:
    """Return a crash before each write of the life, in order."""
    files = files_of_a_new_table()
    crashes: list[Crash] = []

    def crash(_at: int) -> None:
        if points.calls[-1][0] in WRITES:
            crashes.append(Crash(copy_of_files(files), life.acknowledged, tuple(points.calls)))

    points = CrashPoints(files, state=lambda: len(points.calls), changed=crash)
    life = Life(points, "first")
    life.run()
    return crashes


def crashes_over_objects(options: Mapping[str, str]) -> list[Crash]:
    """Return a crash for each state that any I/O of the life finds in the object store, in order."""
    memory = MemoryStore()
    files = objects_with_a_new_table(options, memory)
    crashes: list[Crash] = []

    def crash(_at: int) -> None:
        left = objects_in_memory(copy_of_objects(memory))
        crashes.append(Crash(left, life.acknowledged if life else 0, tuple(points.calls)))

    life: Life | None = None
    points = CrashPoints(files, state=lambda: (objects_in(memory), life.acknowledged if life else 0), changed=crash)
    life = Life(points, "first", root=IN_OBJECTS, options=options)
    life.run()
    return crashes


def test_writes_of_each_kind_are_struck() -> None:
    writes = [crash.calls[-1][0] for crash in crashes_at_writes()]

    assert len(writes) > 70
    assert {"create_if_absent", "delete", "open_output", "replace", "sync"} <= set(writes)


def test_a_crash_at_any_write_loses_nothing() -> None:
    for crash in crashes_at_writes():
        with named(str(crash)):
            lose_unsynced(crash.files, crash.calls)
            check_what_is_there(crash.files, crash.acknowledged)
            again = Life(crash.files, "second", crash.acknowledged)
            again.run()
            check_what_is_there(crash.files, len(LIFE))


PLACES = pytest.mark.parametrize("options", [OPTIONS, OPTIONS_OUTSIDE], ids=["in the table", "apart from it"])


@PLACES
def test_a_crash_at_any_io_over_an_object_store_loses_nothing_and_a_clean_up_leaves_no_stray(
    options: Mapping[str, str],
) -> None:
    """Also crashes at reads: the process has then not yet verified its own write."""
    crashes = crashes_over_objects(options)
    assert len(crashes) > len(LIFE) * 5

    for crash in crashes:
        with named(str(crash)):
            files = crash.files
            check_what_is_there(files, crash.acknowledged, IN_OBJECTS, options)
            again = Life(files, "second", crash.acknowledged, root=IN_OBJECTS, options=options)
            again.run()
            check_what_is_there(files, len(LIFE), IN_OBJECTS, options)
            store = again.table.reopened()
            store.expire.expire()  # finish the expiry that the crash interrupted
            store.orphans.remove(modified_until_ms=2**62, dry_run=False)
            everything = every_file(files, IN_OBJECTS) | every_file(files, OUTSIDE)
            lying = {path for path in everything if "/data-" in path}
            assert {path.startswith(OUTSIDE) for path in lying} == {options is OPTIONS_OUTSIDE}
            assert lying == needed_by_snapshots(store)


@pytest.mark.parametrize("step", thinned((10, 1), keep=1))
def test_a_recorded_crash_leaves_what_a_crash_leaves(step: int) -> None:
    for crash in crashes_at_writes()[::step]:
        files = files_of_a_new_table()
        faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=len(crash.calls)))
        with named(str(crash)):
            assert acknowledged_by(Life(faulty, "first")) == crash.acknowledged
            assert tuple(faulty.calls) == crash.calls
            assert contents(files, "/warehouse") == contents(crash.files, "/warehouse")


@pytest.mark.parametrize("step", thinned((10, 1), keep=1))
@PLACES
def test_a_recorded_crash_leaves_what_a_crash_leaves_in_an_object_store(options: Mapping[str, str], step: int) -> None:
    """Also what a crash leaves at the reads between two recorded ones."""
    recorded = crashes_over_objects(options)[1:]  # at first, the process does not live yet
    for crash, following in list(pairwise(recorded))[::step]:
        for at in range(len(crash.calls), len(following.calls)):
            files = objects_with_a_new_table(options)
            faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at))
            with named(f"{crash}, struck at {at}"):
                life = Life(faulty, "first", root=IN_OBJECTS, options=options)
                assert acknowledged_by(life) == crash.acknowledged
                for root in (IN_OBJECTS, OUTSIDE):
                    assert contents(files, root) == contents(crash.files, root)


def acknowledged_by(life: Life) -> int:
    with pytest.raises(SimulatedCrash):
        life.run()
    return life.acknowledged


def contents(files: FileIO, directory: str) -> dict[str, bytes]:
    return {path: files.read_bytes(path) for path in every_file(files, directory)}


@pytest.mark.parametrize("kind", [FaultKind.FAIL, FaultKind.LOSE_ANSWER, FaultKind.ANSWER_503])
def test_an_outage_at_any_write_is_survived_by_doing_it_again(kind: FaultKind) -> None:
    # A store that is busy and one whose answer is lost differ in what a create raises.
    struck = frozenset({"create_if_absent"}) if kind is FaultKind.ANSWER_503 else WRITES
    count = sum(crash.calls[-1][0] in struck for crash in crashes_at_writes())
    assert count >= len(LIFE) - 1  # an expiry makes no snapshot
    for at in range(1, count + 1):
        files = files_of_a_new_table()
        faulty = FaultyFileIO(files, Fault(kind, at=at, operation=struck))
        life = Life(faulty, "first")
        for _ in range(2):
            with suppress(StorageError):
                life.run()
                break
            check_what_is_there(files, life.acknowledged)
        check_what_is_there(files, len(LIFE))


def files_of_a_new_table() -> MemoryFileIO:
    files = MemoryFileIO()
    Life(files, "creator")
    return files


def objects_with_a_new_table(options: Mapping[str, str], memory: MemoryStore | None = None) -> ObjectStoreFileIO:
    files = objects_in_memory(memory)
    Life(files, "creator", root=IN_OBJECTS, options=options)
    for directory in declared_directories(options):
        ExternalClaims(files, IN_OBJECTS).claim(directory, is_new=True)
    return files


def check_what_is_there(
    files: FileIO, acknowledged: int, root: str = Life.root, options: Mapping[str, str] = OPTIONS
) -> None:
    """Check that live snapshots are complete and the newest is of the last acknowledged step or the next one."""
    store = Life(files, "check", root=root, options=options).table.store
    latest = store.snapshots.latest_id()
    if latest is None:
        assert acknowledged == 0
        return
    newest = store.snapshots.load(latest).commit_identifier
    last_commit = max((n for n in range(acknowledged) if not LIFE[n].expires), default=-1)
    assert newest >= last_commit
    assert newest <= acknowledged + 1
    earliest = store.snapshots.earliest_id()
    assert earliest is not None
    for snapshot_id in range(earliest, latest + 1):
        check_snapshot(store, snapshot_id)


def check_snapshot(store: FileStore, snapshot_id: int) -> None:
    snapshot = store.snapshots.load(snapshot_id)
    rows = sorted(
        (
            tuple(row.values())
            for split in store.scan.plan(snapshot).splits()
            for batch in store.read.read(split)
            for row in batch.to_pylist()
        ),
        key=repr,
    )
    assert rows == EXPECTED[snapshot.commit_identifier + 1]


def lose_unsynced(files: FileIO, calls: Sequence[tuple[str, str]]) -> None:
    """Simulate a power cut: empty files that were written but not yet synced."""
    unsynced: set[str] = set()
    for operation, path in calls:
        if operation == "open_output":
            unsynced.add(path)
        elif operation == "sync" and (operation, path) != calls[-1]:
            unsynced -= set(path.split(","))
        elif operation == "delete":
            unsynced.discard(path)
    for path in unsynced:
        if files.exists(path):
            files.replace(path, b"")
