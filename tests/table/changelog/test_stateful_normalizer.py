"""``scan.normalize=state``: a stream stores the rows that it has returned, across expiry and crashes."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import AddColumn, DynamicTable, InvalidInputError, MemoryCatalog, SnapshotExpiredError, StreamPosition
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.table.changelog import changelog_normalizer, changelog_state, complete_appends, stream_states
from storage_lib.table.changelog.stream_states import StreamStates
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.support.breaking_log import BreakingLog
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import WRITES, Fault, FaultKind, FaultyFileIO, SimulatedCrash
from tests.support.orders_table import content, orders, reopened, rows
from tests.support.strict_changelog import strictly_applied, told


class Reader:
    """A stream with a state on disk that resumes at its last saved position after each crash."""

    def __init__(self, table: DynamicTable, chance: random.Random, directory: Path, startup: str = "full") -> None:
        self.table = table
        self.chance = chance
        self.directory = str(directory)
        self.position = table.stream(startup=startup, normalize="none").initial_position()
        self.received: list[str] = []

    def read_on(self, bites: int | None, *, crash_rate: float = 0.0) -> None:
        while bites is None or bites > 0:
            source = reopened(self.table).stream(normalize="state", state_directory=self.directory)
            start = StreamPosition.from_json(self.position.to_json())
            end = source.latest_position(start, max_rows=self.chance.choice([1, 2, 5, None]))
            if end == start:
                return
            parts = [(batch for batch in source.read(split)) for split in source.plan(start, end)]
            if self.chance.random() < crash_rate:
                for part in parts[: self.chance.randrange(len(parts) + 1)]:
                    next(part, None)
                continue
            self.received += [text for part in parts for batch in part for text in texts(batch)]
            self.position = end
            bites = None if bites is None else bites - 1


def texts(batch: pa.RecordBatch | pa.Table | None) -> list[str]:
    listed = [] if batch is None else batch.to_pylist()
    return [f"{row['_row_kind']} {row['dt']} {row['id']} {row['price']}" for row in listed]


def by_key(changes: list[str]) -> list[str]:
    return sorted(changes, key=lambda change: change.split()[1:3])


def some_changes(chance: random.Random, number: int) -> list[str]:
    return [
        f"{chance.choice(['+I', '+U', '+U', '-D'])} {chance.choice('ab')} {chance.randrange(6)} {number * 100 + n}"
        for n in range(chance.randrange(1, 14))
    ]


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (changelog_normalizer, complete_appends):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 3)


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the states in memory, so that nothing is synced to a disk."""
    files = MemoryFileIO()
    monkeypatch.setattr(stream_states, "file_io_of", lambda *_: files)


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("options", [{"bucket": "2"}, {"log.consistency": "eventual"}, {"log.changelog-mode": "all"}])
@pytest.mark.parametrize("seed", range(2))
def test_readers_that_die_between_their_notes_hear_each_change_once(
    seed: int, options: dict[str, str], tmp_path: Path
) -> None:
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = orders(None, **options)
    readers = [(Reader(table, chance, tmp_path / "first"), set[str]())]
    written: list[str] = []
    for number in range(5):
        changes = some_changes(chance, number)
        table.append(rows(*changes))
        written += changes
        if number == 3:
            table.compact()
            readers += [
                (Reader(table, chance, tmp_path / "full"), set()),
                (Reader(table, chance, tmp_path / "latest", "latest"), content(table)),
            ]
        for reader, _ in readers:
            reader.read_on(chance.choice([0, 1, 2, None]), crash_rate=0.4)
    for reader, start in readers:
        reader.read_on(None)
        assert strictly_applied(by_key(reader.received), start) == content(table)
    assert by_key(readers[0][0].received) == by_key(told(written))


@pytest.mark.usefixtures("in_memory")
def test_a_state_begins_and_goes_on_under_any_version_of_the_schema(tmp_path: Path) -> None:
    table = orders(None)
    for name in ("v", "w"):
        table = table.alter(AddColumn(name, "INT"))
    reader = Reader(table, random.Random(1), tmp_path)  # noqa: S311  not for secrets
    table.append(pa.Table.from_pylist([{"dt": "a", "id": 1, "price": 10, "v": 1, "w": 1}], schema=table.arrow_schema))
    reader.read_on(None)
    for name in ("x", "y"):
        table = table.alter(AddColumn(name, "INT"))

    table.upsert([{"dt": "a", "id": 1, "price": 20}], partial=True)

    reader.read_on(None)
    assert reader.received == ["+I a 1 10", "-U a 1 10", "+U a 1 20"]


@pytest.mark.usefixtures("in_memory")
def test_a_state_holds_the_rows_of_a_table_that_has_a_new_log(tmp_path: Path) -> None:
    table = orders(None, bucket="2")
    table.append(rows(*(f"+I a {number} 1" for number in range(6))))
    table.compact(full=True)
    table = table.rewrite(options={"bucket": "1"})
    table.compact(full=True)
    reader = Reader(table, random.Random(1), tmp_path)  # noqa: S311  not for secrets
    reader.read_on(None)

    table.append(rows("+U a 3 2"))

    reader.read_on(None)
    assert reader.received[6:] == ["-U a 3 1", "+U a 3 2"]


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("mode", ["upsert", "all"])
def test_the_rows_before_are_those_that_the_stream_has_read_whatever_the_log_says(mode: str) -> None:
    table = orders(None, **{"log.changelog-mode": mode})
    stream = table.stream(normalize="state")
    table.append(rows("+I a 1 10"))
    assert texts(stream.poll()) == ["+I a 1 10"]
    table.append(rows("+I a 1 20", "+I a 2 5"), change_tracking=False)

    table.append(rows("+I a 1 30", "+I a 2 6"))

    assert by_key(texts(stream.poll())) == ["-U a 1 10", "+U a 1 30", "+I a 2 6"]


def test_a_state_for_a_table_without_a_log_is_refused() -> None:
    table = orders(None, **{"log.system": "none"})

    with pytest.raises(InvalidInputError, match=r"this table has none; .* with scan.normalize=lookup"):
        table.stream(normalize="state")


@pytest.mark.usefixtures("in_memory")
@pytest.mark.parametrize("seed", range(3))
def test_what_a_repair_tells_again_follows_upon_what_was_heard(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = orders(MemoryCatalog(environment=fake_environment()), bucket="2")
    assert table.log is not None
    log = BreakingLog(table.log)
    broken = reopened(table, log)
    readers = [(Reader(table, chance, tmp_path / "first"), set[str]())]
    for number in range(5):
        log.loses_next_commits = chance.choice([0, 0, 1, 2])
        broken.append(rows(*some_changes(chance, number)))
        if number == 3:
            readers.append((Reader(table, chance, tmp_path / "second"), set()))
        for reader, _ in readers:
            reader.read_on(chance.choice([0, 1, 2, None]), crash_rate=0.2)
    log.loses_next_commits = 0
    broken.append(rows("+I a 99 1"))
    for reader, start in readers:
        reader.read_on(None)
        assert strictly_applied(by_key(reader.received), start) == content(table)


def test_a_repair_of_what_the_state_began_with_follows_upon_what_was_before_it(tmp_path: Path) -> None:
    table = orders(MemoryCatalog(environment=fake_environment()))
    assert table.log is not None
    log = BreakingLog(table.log)
    mortal = reopened(table, log)
    mortal.append(rows("+I a 1 1"))
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        mortal.append(rows("+U a 1 2"))
    early, late = (
        table.stream(normalize="state", startup=startup, state_directory=str(tmp_path / startup))
        for startup in ("latest", "full")
    )
    assert [texts(source.poll()) for source in (early, late)] == [[], ["+I a 1 2"]]
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(3600)
    after_abort = table.stream(normalize="state", startup="latest", state_directory=str(tmp_path / "after abort"))
    assert texts(after_abort.poll()) == []
    table.append(rows("+U a 1 3"))

    assert texts(early.poll()) == ["-U a 1 1", "+U a 1 2", "-U a 1 2", "+U a 1 3"]
    assert texts(late.poll()) == ["-U a 1 2", "+U a 1 3"]
    assert texts(after_abort.poll()) == ["-U a 1 1", "+U a 1 2", "-U a 1 2", "+U a 1 3"]


@pytest.mark.usefixtures("in_memory")
def test_of_two_tasks_with_the_same_work_one_writes_the_state() -> None:
    schema, environment = orders(None).schema, fake_environment()
    states = [
        StreamStates(table="t", uuid="u", environment=environment, schema=schema, directory=name, store_options={}).of(
            0, 1
        )
        for name in ("shared", "shared")
    ]
    changes = [(rows("+I a 1 1").drop_columns("_row_kind").to_batches()[0], pa.array([0], pa.int8()))]
    states[0].advance(None, changes, offset=5)
    seen = [state.newest() for state in states]
    states[0].advance(seen[0], changes, offset=9)
    states[1].advance(seen[1], changes, offset=7)

    newest = states[1].newest()
    assert newest is not None
    assert (newest.offset, newest.snapshot.id) == (9, 2)
    assert [at.offset for offset in (4, 5, 8, 9, 99) if (at := states[1].at(offset)) is not None] == [5, 5, 9, 9]


def test_a_stream_needs_no_snapshot_but_the_one_it_begins_with(tmp_path: Path) -> None:
    """Rows written to the files only do not mislead it either."""
    table = orders(None, bucket="2")
    table.append(rows("+I a 1 1", "+I a 2 1", "+I a 3 1"))
    source = table.stream(normalize="state", state_directory=str(tmp_path))
    received = texts(source.poll())
    table.append(rows("+U a 2 5"), change_tracking=False)
    for price in range(2, 6):
        table.append(rows(f"+U a 1 {price}"))
    table.append(rows("+U a 2 7", "-D a 3 1"))
    table.maintenance.expire_snapshots(retain_last=1)
    assert source.position is not None
    again = reopened(table).stream(normalize="state", state_directory=str(tmp_path), position=source.position)

    received += texts(again.poll())

    assert "-U a 2 1" in received
    assert strictly_applied(by_key(received)) == content(table)
    # Without the state the same position fails.
    with pytest.raises(SnapshotExpiredError):
        reopened(table).stream(normalize="lookup", position=source.position).poll()


def test_a_state_lives_as_long_as_its_stream_where_no_directory_is_named() -> None:
    table = orders(None, **{"scan.normalize": "state"})
    source = table.stream()
    received = []
    for change in ("+I a 1 1", "+U a 1 2", "-D a 1 -"):
        table.append(rows(change))
        table.maintenance.expire_snapshots(retain_last=1)
        received += texts(source.poll())

    assert received == ["+I a 1 1", "-U a 1 1", "+U a 1 2", "-D a 1 2"]


def test_a_state_goes_on_under_the_tables_next_schema(tmp_path: Path) -> None:
    table = orders(None)
    table.append(rows("+I a 1 1"))
    source = table.stream(normalize="state", state_directory=str(tmp_path))
    source.poll()
    altered = table.alter(AddColumn("note", "STRING"))
    altered.append(rows("+U a 1 2").append_column("note", pa.array(["new"])))
    altered.maintenance.expire_snapshots(retain_last=1)

    batch = altered.stream(normalize="state", state_directory=str(tmp_path), position=source.position).poll()

    assert batch is not None
    assert [(row["_row_kind"], row["price"], row["note"]) for row in batch.to_pylist()] == [
        ("-U", 1, None),
        ("+U", 2, "new"),
    ]


def test_a_stream_that_dies_at_any_act_on_its_state_goes_on_as_if_it_had_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """It restarts from the last saved position and receives later changes again; the table keeps no snapshot."""
    for name, value in (("_EXPIRES_EVERY", 3), ("_VERSIONS_KEPT", 2)):
        monkeypatch.setattr(changelog_state, name, value)
    monkeypatch.setitem(changelog_state._OPTIONS, "num-sorted-run.compaction-trigger", "2")
    table = orders(None)
    table.append(rows("+I a 1 1", "+I a 2 1"))
    first = table.stream(startup="full").initial_position()
    changes = (["+U a 1 2", "-D a 2 1"], ["+U a 1 3", "+I a 2 3"], ["+U a 3 5"])

    def live(files: FileIO, position: StreamPosition) -> tuple[list[str], StreamPosition]:
        monkeypatch.setattr(stream_states, "file_io_of", lambda *_: files)
        stream = reopened(table).stream(normalize="state", state_directory="state", position=position)
        received = texts(stream.poll())
        assert stream.position is not None
        return received, stream.position

    counted = FaultyFileIO(MemoryFileIO())
    lives = [live(counted, first)]
    for change in changes:
        table.append(rows(*change))
        lives.append(live(counted, lives[-1][1]))
    assert strictly_applied([change for received, _ in lives for change in received]) == content(table)

    positions = [first, *(position for _, position in lives)]
    monkeypatch.setattr(HybridSource, "latest_position", lambda _, start: positions[positions.index(start) + 1])
    written = sum(operation in WRITES for operation, _ in counted.calls)
    assert written > 30
    for at in range(1, written + 1):
        files = MemoryFileIO()
        kind = FaultKind.TEAR if at % 2 else FaultKind.CRASH_AFTER
        mortal: FileIO = FaultyFileIO(files, Fault(kind, at=at, operation=WRITES))
        for start, expected in zip(positions, lives, strict=False):
            try:
                assert live(mortal, start) == expected
            except SimulatedCrash:
                mortal = files
                assert live(mortal, start) == expected


def test_old_versions_of_a_state_go_and_those_of_the_last_hour_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_EXPIRES_EVERY", 2), ("_VERSIONS_KEPT", 3)):
        monkeypatch.setattr(changelog_state, name, value)
    environment = fake_environment()
    table = orders(MemoryCatalog(environment=environment))
    table.append(rows("+I a 1 0"))
    source = table.stream(normalize="state", state_directory=str(tmp_path))
    source.poll()
    clock = environment.clock
    assert isinstance(clock, FakeClock)
    received: list[str] = []
    for price in range(1, 13):
        table.append(rows(f"+U a 1 {price}"))
        received += texts(source.poll())
        clock.pass_time(1200)

    assert 3 <= len(list(tmp_path.rglob("snapshot-*"))) <= 10
    assert len(list(tmp_path.rglob("data-*"))) < 13
    assert strictly_applied(received, {"a 1 0"}) == {"a 1 12"}


@pytest.mark.parametrize("loses_state", [False, True])
def test_a_stream_that_began_on_the_empty_table_retracts_no_row_that_it_has_not_read(
    tmp_path: Path, *, loses_state: bool
) -> None:
    table = orders()
    source = table.stream(normalize="state", state_directory=str(tmp_path / "first"))
    assert source.poll() is None
    table.append(rows("+I a 1 1", "+I a 2 1"), change_tracking=False)
    table.append(rows("+U a 1 2"))
    assert texts(source.poll()) == ["+I a 1 2"]
    position = source.position
    table.append(rows("+U a 1 3", "+U a 2 3"))
    if loses_state:
        source = table.stream(normalize="state", state_directory=str(tmp_path / "second"), position=position)

    assert by_key(texts(source.poll())) == ["-U a 1 2", "+U a 1 3", "+I a 2 3"]


def test_a_stream_of_new_changes_retracts_the_rows_that_were_there(tmp_path: Path) -> None:
    table = orders()
    table.append(rows("+I a 1 1"), change_tracking=False)
    source = table.stream(startup="latest", normalize="state", state_directory=str(tmp_path))
    source.poll()
    table.append(rows("+U a 1 2"))

    assert texts(source.poll()) == ["-U a 1 1", "+U a 1 2"]
