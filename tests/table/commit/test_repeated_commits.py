"""A commit under one identity is in the table once, however often and however late it is repeated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest

from storage_lib import AddColumn, CorruptFileError, DynamicTable, MemoryCatalog, RenameColumn, col
from storage_lib.file_store.snapshot import past_commits
from storage_lib.file_store.snapshot.past_commits import NEWEST_KEPT, PastCommits
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.io.table_directory.numbered_files import NumberedFiles
from tests.support.crash_points import named
from tests.support.deep_tests import thinned
from tests.support.every_file import every_file
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import reopened

COLUMNS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
SUM = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "bucket": "1"}
TABLES: dict[str, tuple[list[str], dict[str, str]]] = {
    "sums": (["id"], SUM | {"log.system": "none"}),
    "append-only": ([], {"write-mode": "append-only", "log.system": "none"}),
    "counts": ([], {"bucket": "1", "log.system": "none"}),
    "log": ([], {"bucket": "1"}),
}


def made(kind: str = "append-only", **more: str) -> DynamicTable:
    primary_key, options = TABLES[kind]
    clock = FakeClock()
    return MemoryCatalog(environment=fake_environment(clock=clock)).create_table(
        "shop.sales", COLUMNS, primary_key=primary_key, options=options | more
    )


def sell(table: DynamicTable, user: str, identifier: int) -> int:
    """Add a row of this ``id``; return the id of the commit's snapshot."""
    snapshot = table.append([{"id": identifier, "n": 1}], commit_user=user, commit_identifier=identifier)
    assert snapshot is not None
    assert (snapshot.commit_user, snapshot.commit_identifier) == (user, identifier)
    return snapshot.id


def stream(table: DynamicTable, user: str, identifier: int) -> int:
    """Do the same as the batch of a stream, whose identifiers ascend."""
    builder = table.new_write()
    context = replace(builder.begin(commit_user=user), identifiers_ascend=True)
    with builder.open_task(context) as write:
        write.write(pa.table({"id": [identifier], "n": [1]}, schema=COLUMNS).to_batches()[0])
        snapshot = builder.commit(context, [write.prepare_commit()], identifier)
    assert snapshot is not None
    return snapshot.id


def sold(table: DynamicTable) -> Counter[int]:
    found = Counter[int]()
    for row in table.to_arrow().to_pylist():
        found[row["id"]] += row["n"]
    return found


def lists_of_commits(table: DynamicTable) -> set[str]:
    return {path for path in every_file(table.environment.file_io, table.location) if "/commits/" in path}


@pytest.mark.parametrize("write", [sell, stream])
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("process", ["the same", "another"])
def test_a_commit_is_recognised_after_its_snapshot_has_expired(
    kind: str, process: str, write: Callable[[DynamicTable, str, int], int]
) -> None:
    table = made(kind)
    first = write(table, "nightly", 20)
    for number in range(4):
        sell(table, "others", number)
    table.maintenance.expire_snapshots(retain_last=1)
    retry = table if process == "the same" else reopened(table)

    assert write(retry, "nightly", 20) == first

    assert sold(table) == {20: 1, 0: 1, 1: 1, 2: 1, 3: 1}


def test_an_expired_commit_is_not_looked_for_where_nothing_has_expired_or_the_snapshot_is_there() -> None:
    table = made()
    sell(table, "u", 1)
    files = FaultyFileIO(table.environment.file_io)
    process = reopened_in(files, table, names="fresh")
    sell(process, "u", 2)
    sell(process, "u", 3)
    process.maintenance.expire_snapshots(retain_last=2)
    before = len(files.calls)

    sell(process, "u", 3)
    sell(reopened_in(files, table, names="retry"), "u", 2)
    stream(reopened_in(files, table, names="stream"), "u", 4)
    process.append([{"id": 9, "n": 1}])

    assert not [path for _, path in files.calls[before:] if "/commits/" in path]


def test_commits_of_expired_snapshots_are_read_once() -> None:
    table = made()
    for number in range(4):
        sell(table, "u", number)
    table.maintenance.expire_snapshots(retain_last=1)
    files = FaultyFileIO(table.environment.file_io)
    process = reopened_in(files, table, names="fresh")

    for number in range(4, 8):
        sell(process, "u", number)

    assert len([path for _, path in files.calls if "/commits/" in path]) == 1


def test_a_commit_that_was_rolled_back_is_made_again_also_after_its_snapshot_has_expired() -> None:
    for expires in (False, True):
        table = made()
        sell(table, "u", 1)
        sell(table, "u", 2)
        table.tags.create("both")
        table.rollback_to(snapshot_id=1, commit_user="operator", commit_identifier=1)
        if expires:
            table.maintenance.expire_snapshots(retain_last=1)

        assert sell(reopened(table), "u", 2) == 4
        assert sell(reopened(table), "u", 1) == 1
        assert sold(table) == {1: 1, 2: 1}

        # The rollback itself is a commit, which brings back what it restores.
        table.rollback_to(tag="both", commit_user="operator", commit_identifier=2)
        table.maintenance.expire_snapshots(retain_last=1)
        assert sell(reopened(table), "u", 2) == 2
        again = reopened(table).rollback_to(tag="both", commit_user="operator", commit_identifier=2)
        assert again is not None
        assert again.id == 5
        assert sold(table) == {1: 1, 2: 1}


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize("kind", ["counts", "log"])
def test_a_commit_that_was_rolled_back_is_made_again_although_a_deletion_had_undone_it(
    kind: str,
    tracked: bool,  # noqa: FBT001  a parameter
) -> None:
    table = made(kind)
    sell(table, "u", 1)
    sell(table, "u", 2)
    table.delete(col("id") == 2)

    restored = table.rollback_to(snapshot_id=1, change_tracking=tracked)
    again = table.rollback_to(snapshot_id=1, change_tracking=tracked)

    assert restored is not None
    assert again is None, "there is nothing to take back any more"
    assert sell(reopened(table), "u", 1) == 1
    assert sell(reopened(table), "u", 2) == 5
    assert sold(table) == {1: 1, 2: 1}


@pytest.mark.parametrize("kind", ["counts", "log"])
def test_a_tracked_rollback_to_a_commit_that_changed_nothing_brings_it_back(kind: str) -> None:
    table = made(kind)
    sell(table, "u", 1)
    sell(table, "u", 2)
    table.delete(col("id") == 2, commit_user="u", commit_identifier=3)
    table.rollback_to(snapshot_id=1, change_tracking=True)

    table.rollback_to(snapshot_id=3, change_tracking=True)

    assert sell(table, "u", 2) == 2
    assert sold(table) == {1: 1}


def test_each_branch_has_its_own_commits() -> None:
    table = made()
    table.branches.create("dev")
    dev = table.branches.open("dev")
    for number in range(3):
        sell(dev, "u", number)
    dev.maintenance.expire_snapshots(retain_last=1)

    assert sell(table, "u", 1) == 1
    assert sell(reopened(table).branches.open("dev"), "u", 1) == 2
    assert sold(dev) == {0: 1, 1: 1, 2: 1}


def test_commits_are_kept_for_the_time_of_the_option_and_the_newest_for_ever() -> None:
    table = made()
    sell(table, "u", 1)
    first = table.context.file_store.snapshots.load(1)
    late = replace(first, time_millis=first.time_millis + 1)
    snapshots = [replace(first, id=number, commit_identifier=number) for number in range(1, NEWEST_KEPT + 101)]
    snapshots[0] = replace(late, id=1, commit_identifier=1)

    kept = PastCommits(below=1).followed_by(snapshots, below=9999, since_millis=late.time_millis)

    assert [each.identifier for each in kept.records] == [1, *range(101, NEWEST_KEPT + 101)]


@pytest.mark.parametrize("retained", ["1 h", "3 h"])
def test_an_option_says_how_long_older_commits_are_kept(retained: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_commits, "NEWEST_KEPT", 1)
    table = made(**{"commit.identity-time-retained": retained})
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    sell(table, "u", 1)
    clock.pass_time(2 * 3600)
    sell(table, "u", 2)
    sell(table, "u", 3)
    table.maintenance.expire_snapshots(retain_last=1)

    assert sell(reopened(table), "u", 1) == (4 if retained == "1 h" else 1)


def test_a_damaged_list_of_commits_stops_a_commit_that_it_may_contain() -> None:
    table = made()
    for number in range(3):
        sell(table, "u", number)
    table.maintenance.expire_snapshots(retain_last=1)
    (path,) = lists_of_commits(table)
    table.environment.file_io.replace(path, b'{"version": 1}')

    with pytest.raises(CorruptFileError, match="does not list the commits") as raised:
        sell(reopened(table), "u", 0)

    assert raised.value.committed is False
    assert sold(table) == {0: 1, 1: 1, 2: 1}


def test_commits_are_kept_where_another_engine_has_moved_on() -> None:
    table = made()
    for number in range(6):
        sell(table, "u", number)
    table.maintenance.expire_snapshots(retain_last=3)
    files = table.environment.file_io
    files.replace(f"{table.location}/snapshot/EARLIEST", b"6")
    for number in (4, 5):
        files.delete(f"{table.location}/snapshot/snapshot-{number}")

    assert sell(reopened(table), "u", 1) == 2


def test_an_expiry_that_crashed_forgets_and_invents_no_commit() -> None:
    for at in range(1, 200):
        files = MemoryFileIO()
        table = MemoryCatalog(environment=fake_environment(files)).create_table(
            "shop.sales", COLUMNS, options=TABLES["append-only"][1]
        )
        for number in range(3):
            sell(table, "u", number)
        faulty = FaultyFileIO(files, Fault(FaultKind.CRASH_BEFORE, at=at))
        try:
            reopened_in(faulty, table, names="dying").maintenance.expire_snapshots(retain_last=1)
        except SimulatedCrash:
            retry = reopened_in(FaultyFileIO(files), table, names="retry")
            if (retry.inspect.earliest_snapshot_id() or 1) == 1:
                # Another engine rolls back to a snapshot that is still in force, and its number is used again.
                for number in (2, 3):
                    files.delete(f"{table.location}/snapshot/snapshot-{number}")
                files.replace(f"{table.location}/snapshot/LATEST", b"1")
            with named(f"I/O {at}"):
                for number in range(3):
                    sell(retry, "u", number)
                retry.maintenance.expire_snapshots(retain_last=1)
                again = reopened_in(FaultyFileIO(files), table, names="again")
                for number in range(3):
                    sell(again, "u", number)
                assert sold(again) == {0: 1, 1: 1, 2: 1}
                assert all("/commits-3-" in path for path in lists_of_commits(table))
        else:
            break
    assert at > 20


def test_a_process_makes_a_commit_again_that_another_engine_has_rolled_back() -> None:
    table = made()
    for number in range(4):
        sell(table, "u", number)
    files = table.environment.file_io
    for number in (3, 4):
        files.delete(f"{table.location}/snapshot/snapshot-{number}")
    files.replace(f"{table.location}/snapshot/LATEST", b"2")

    assert sell(table, "u", 1) == 2
    assert sell(table, "u", 3) == 3

    assert sold(reopened(table)) == {0: 1, 1: 1, 3: 1}


def test_an_idle_process_knows_the_commits_that_others_made_after_another_engine_rolled_back() -> None:
    clock = FakeClock()
    table = MemoryCatalog(environment=fake_environment(clock=clock)).create_table(
        "shop.sales", COLUMNS, options={"write-mode": "append-only", "log.system": "none"}
    )
    for number in range(4):
        sell(table, "u", number)
    files = table.environment.file_io
    for number in (3, 4):
        files.delete(f"{table.location}/snapshot/snapshot-{number}")
    files.replace(f"{table.location}/snapshot/LATEST", b"2")
    others = reopened(table)
    for number in (10, 11, 12):
        sell(others, "v", number)

    clock.pass_time(20.0)

    assert {number: table.new_write().committed("v", number) is not None for number in (10, 11, 12)} == {
        10: True,
        11: True,
        12: True,
    }
    assert table.new_write().committed("u", 3) is None


def test_an_expiry_that_moves_earliest_back_forgets_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    for number in range(8):
        sell(table, "u", number)
    files, write = table.environment.file_io, NumberedFiles.write_earliest
    fault = Fault(FaultKind.CRASH_BEFORE, operation="delete", path="/manifest/")
    faster = [reopened_in(FaultyFileIO(files, fault), table, names="faster")]

    def write_late(numbered: NumberedFiles, number: int) -> None:
        if faster:
            with pytest.raises(SimulatedCrash):
                faster.pop().maintenance.expire_snapshots(retain_last=2)
        write(numbered, number)

    monkeypatch.setattr(NumberedFiles, "write_earliest", write_late)
    reopened_in(FaultyFileIO(files), table, names="slower").maintenance.expire_snapshots(retain_last=4)

    for number in range(8):
        sell(reopened_in(FaultyFileIO(files), table, names=f"retry-{number}"), "u", number)
    assert sold(table) == dict.fromkeys(range(8), 1)


def test_an_expiry_that_is_overtaken_leaves_no_snapshot_whose_files_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    table = made()
    for number in range(8):
        table.overwrite([{"id": number, "n": 1}], partition={})
    files, write = table.environment.file_io, NumberedFiles.write_earliest
    # The faster one crashes when it has deleted data, and the snapshots that name the data are still there.
    fault = Fault(FaultKind.CRASH_BEFORE, operation="delete", path="/manifest/")
    faster = [reopened_in(FaultyFileIO(files, fault), table, names="faster")]

    def write_late(numbered: NumberedFiles, number: int) -> None:
        if faster:
            with pytest.raises(SimulatedCrash):
                faster.pop().maintenance.expire_snapshots(retain_last=2)
        write(numbered, number)

    monkeypatch.setattr(NumberedFiles, "write_earliest", write_late)
    result = reopened_in(FaultyFileIO(files), table, names="slower").maintenance.expire_snapshots(retain_last=4)

    assert (result.earliest_id, result.snapshot_count) == (7, 6)
    fresh = reopened_in(FaultyFileIO(files), table, names="reader")
    for number in range(fresh.inspect.earliest_snapshot_id() or 1, 9):
        assert [row["id"] for row in fresh.to_arrow(snapshot_id=number).to_pylist()] == [number - 1]


@dataclass
class RepeatingLife:
    """A random life of a table whose commits are repeated; the model is the set of rows of each snapshot."""

    kind: str
    drawn: random.Random
    rows: set[int] = field(default_factory=set)
    past: dict[int, set[int]] = field(default_factory=dict)
    tagged: dict[str, set[int]] = field(default_factory=dict)
    made: list[tuple[str, int]] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    steps: int = 0

    def __post_init__(self) -> None:
        self.table = made(self.kind)
        self.handles = [self.fresh(), self.fresh()]

    def fresh(self) -> DynamicTable:
        self.steps += 1
        return reopened_in(FaultyFileIO(self.table.environment.file_io), self.table, names=f"p{self.steps}")

    def run(self, steps: int) -> None:
        moves = ["new"] * 4 + ["repeat"] * 5 + ["expire"] * 3 + ["roll back"] * 2
        moves += ["crash", "tag", "compact", "restart", "cut"]
        for _ in range(steps):
            move = self.drawn.choice(moves)
            self.told.append(move)
            getattr(self, move.replace(" ", "_"))(self.drawn.choice([*self.handles, self.fresh()]))
            with named("; ".join(self.told)):
                assert sold(self.fresh()) == dict.fromkeys(self.rows, 1)
            if newest := self.fresh().inspect.latest_snapshot_id():
                self.past[newest] = set(self.rows)

    def new(self, handle: DynamicTable) -> None:
        user = self.drawn.choice(["job", "stream", f"run-{len(self.made)}"])
        self.commit(handle, user, len(self.made))
        self.made.append((user, len(self.made)))

    def repeat(self, handle: DynamicTable) -> None:
        if self.made:
            # A stream repeats its last batches only.
            streamed = [each for each in self.made if each[0] == "stream"][:-2]
            self.commit(handle, *self.drawn.choice([each for each in self.made if each not in streamed]))

    def commit(self, handle: DynamicTable, user: str, identifier: int) -> None:
        self.told[-1] += f" {user} {identifier}"
        (stream if user == "stream" else sell)(handle, user, identifier)
        self.rows.add(identifier)

    def roll_back(self, handle: DynamicTable) -> None:
        earliest, newest = handle.inspect.earliest_snapshot_id() or 1, handle.inspect.latest_snapshot_id() or 0
        retained = [each for each in self.past if earliest <= each <= newest]
        if self.tagged and self.drawn.random() < 0.3:
            tag = self.drawn.choice(sorted(self.tagged))
            target: dict[str, object] = {"tag": tag}
            rows = self.tagged[tag]
        elif retained:
            snapshot_id = self.drawn.choice(retained)
            target, rows = {"snapshot_id": snapshot_id}, self.past[snapshot_id]
        else:
            return
        self.told[-1] += f" {target}"
        handle.rollback_to(**target, change_tracking=False)  # type: ignore[arg-type]
        self.rows = set(rows)

    def expire(self, handle: DynamicTable) -> None:
        handle.maintenance.expire_snapshots(retain_last=self.drawn.choice([1, 1, 2, 4]))

    def crash(self, _: DynamicTable) -> None:
        fault = Fault(FaultKind.CRASH_BEFORE, at=self.drawn.randrange(1, 40))
        dying = reopened_in(FaultyFileIO(self.table.environment.file_io, fault), self.table, names=f"c{self.steps}")
        self.steps += 1
        try:
            self.expire(dying)
        except SimulatedCrash:
            self.told[-1] += f" at {fault.at}"

    def tag(self, handle: DynamicTable) -> None:
        if self.past:
            name = f"t{len(self.told)}"
            handle.tags.create(name)
            self.tagged[name] = set(self.rows)

    def compact(self, handle: DynamicTable) -> None:
        handle.compact(full=True)

    def restart(self, _: DynamicTable) -> None:
        self.handles = [self.fresh(), self.drawn.choice(self.handles)]

    def cut(self, handle: DynamicTable) -> None:
        """Roll back as Paimon does: delete the newest snapshots, whose numbers are used again, and their tags."""
        earliest, newest = handle.inspect.earliest_snapshot_id(), handle.inspect.latest_snapshot_id() or 0
        kept = [each for each in self.past if (earliest or 1) <= each < newest]
        if not kept or self.table.log is not None:
            return
        last, files = self.drawn.choice(kept), self.table.environment.file_io
        self.told[-1] += f" {last}"
        for number in range(last + 1, newest + 1):
            files.delete(f"{self.table.location}/snapshot/snapshot-{number}")
            self.past.pop(number, None)
        for tag in handle.tags.list():
            if tag.snapshot.id > last:
                del self.tagged[tag.name]
                files.delete(f"{self.table.location}/tag/tag-{tag.name}")
        files.replace(f"{self.table.location}/snapshot/LATEST", str(last).encode())
        self.rows = set(self.past[last])
        self.handles = [self.fresh(), self.fresh()]


@pytest.mark.parametrize("seed", thinned(range(40), 4))
@pytest.mark.parametrize("kind", TABLES)
def test_repeated_commits_count_once_in_every_life(kind: str, seed: int) -> None:
    RepeatingLife(kind, random.Random(seed)).run(40)  # noqa: S311  seeded chance


@pytest.mark.parametrize(
    "verb",
    [
        lambda table, rows, **identity: table.append(rows, **identity),
        lambda table, rows, **identity: table.overwrite(rows, **identity),
        lambda table, rows, **identity: table.insert(rows, **identity),
        lambda table, rows, **identity: table.upsert(rows, **identity),
        lambda table, rows, **identity: table.merge(rows, **identity),
        lambda table, _, **identity: table.update("n = 1", {"n": 2}, **identity),
        lambda table, _, **identity: table.delete("n = 1", **identity),
    ],
    ids=["append", "overwrite", "insert", "upsert", "merge", "update", "delete"],
)
def test_a_repeated_commit_is_recognised_although_the_columns_were_altered(
    verb: Callable[..., Snapshot | None],
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table("shop.sales", COLUMNS, primary_key=["id"], options={"log.system": "none"})
    table.append([{"id": 1, "n": 1}])
    made = verb(table, [{"id": 2, "n": 1}], commit_user="task", commit_identifier=7)

    altered = table.alter(RenameColumn("n", "m"), AddColumn("more", "INT"))

    assert made is not None
    assert verb(altered, [{"id": 2, "n": 1}], commit_user="task", commit_identifier=7) == made


def test_a_commit_is_recognised_after_the_log_was_recreated_with_fewer_buckets() -> None:
    # Its log transactions are those of buckets that the new log lacks.
    table = MemoryCatalog().create_table("shop.t", {"k": "BIGINT"}, primary_key=["k"], options={"bucket": "3"})
    rows = [{"k": k} for k in range(20)]
    made = table.append(rows, commit_user="task", commit_identifier=1)

    rewritten = table.rewrite(options={"bucket": "1"})

    assert made is not None
    repeated = rewritten.append(rows, commit_user="task", commit_identifier=1)
    assert repeated is not None
    assert repeated.id == made.id
