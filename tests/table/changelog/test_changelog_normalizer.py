"""``scan.normalize=lookup``: streams of upserts include the old rows, however they are read."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, SnapshotExpiredError, StreamPosition
from storage_lib.table.changelog import changelog_normalizer, complete_appends
from storage_lib.table.stream.hybrid_source import HybridSource
from tests.support.breaking_log import BreakingLog
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.orders_table import content, orders, reopened, rows, streamed
from tests.support.strict_changelog import strictly_applied, told


class Reader:
    """A stream that may be restarted before every batch, and the changes it received, as texts."""

    def __init__(self, table: DynamicTable, chance: random.Random, startup: str = "full") -> None:
        self.table = table
        self.chance = chance
        self.position = table.stream(startup=startup, normalize="lookup").initial_position()
        self.received: list[str] = []

    def read_on(self, bites: int | None) -> None:
        while bites is None or bites > 0:
            table = reopened(self.table) if self.chance.random() < 0.3 else self.table
            source = table.stream(normalize="lookup")
            start = StreamPosition.from_json(self.position.to_json())
            end = source.latest_position(start, max_rows=self.chance.choice([1, 2, 5, None]))
            if end == start:
                return
            for split in source.plan(start, end):
                for batch in source.read(split):
                    self.received += _texts(batch)
            self.position = end
            bites = None if bites is None else bites - 1


def _texts(batch: pa.RecordBatch | pa.Table) -> list[str]:
    return [f"{row['_row_kind']} {row['dt']} {row['id']} {row['price']}" for row in batch.to_pylist()]


def _polled(source: HybridSource) -> list[str]:
    batch = source.poll()
    return [] if batch is None else _texts(batch)


def _by_key(changes: list[str]) -> list[str]:
    """Sort by key: order is kept within a key, but keys of different buckets may arrive in any order."""
    return sorted(changes, key=lambda change: change.split()[1:3])


def _changes(chance: random.Random, number: int) -> list[str]:
    return [
        f"{chance.choice(['+I', '+U', '+U', '-D'])} {chance.choice('ab')} {chance.randrange(6)} {number * 100 + n}"
        for n in range(chance.randrange(1, 14))
    ]


KINDS = [
    {"bucket": "2"},
    {"log.system": "none"},
    {"log.system": "none", "write-buffer-size": "64 b"},
    {"log.consistency": "eventual", "bucket": "2"},
]


@pytest.mark.parametrize("options", KINDS, ids=["log", "snapshots", "snapshots of many files", "eventual"])
@pytest.mark.parametrize("seed", range(2))
def test_every_change_follows_upon_the_one_before(
    seed: int, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small chunks, so that one commit spans many of them.
    for module in (changelog_normalizer, complete_appends):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 3)
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = orders(None, **options)
    readers = [(Reader(table, chance), set[str]())]
    written: list[str] = []
    for number in range(9):
        changes = _changes(chance, number)
        batches = [rows(*changes[:5]), rows(*changes[5:])]
        table.append(pa.concat_tables(batches))
        written += changes
        if chance.random() < 0.3:
            table.compact()
        if number == 4:
            readers += [(Reader(table, chance), set()), (Reader(table, chance, "latest"), content(table))]
        for reader, _ in readers:
            reader.read_on(chance.choice([0, 1, 2, None]))
    for reader, start in readers:
        reader.read_on(None)
        assert strictly_applied(_by_key(reader.received), start) == content(table)
    if table.log is not None:
        assert _by_key(readers[0][0].received) == _by_key(told(written))


@pytest.mark.parametrize("seed", range(3))
def test_what_a_repair_tells_again_follows_upon_what_was_heard(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  not for secrets
    table = orders(MemoryCatalog(environment=fake_environment()), bucket="2")
    assert table.log is not None
    log = BreakingLog(table.log)
    broken = reopened(table, log)
    readers = [(Reader(table, chance), set[str]())]
    for number in range(9):
        log.loses_next_commits = chance.choice([0, 0, 1, 2])
        broken.append(rows(*_changes(chance, number)))
        if number == 3:
            readers.append((Reader(table, chance), set()))
        for reader, _ in readers:
            reader.read_on(chance.choice([0, 1, 2, None]))
    log.loses_next_commits = 0
    broken.append(rows("+I a 99 1"))
    for reader, start in readers:
        reader.read_on(None)
        assert strictly_applied(_by_key(reader.received), start) == content(table)


def test_what_the_log_was_not_told_the_stream_was_not_either() -> None:
    table = orders(None, **{"scan.normalize": "lookup"})
    source = table.stream(startup="latest")
    source.poll()
    table.append(rows("+I a 1 1"))
    received = _polled(source)
    table.append(rows("+U a 1 5"), change_tracking=False)
    table.append(rows("+U a 1 7"))

    assert received + _polled(source) == ["+I a 1 1", "-U a 1 1", "+U a 1 7"]


def test_what_repairs_the_snapshot_that_a_stream_began_with_is_not_told_again() -> None:
    table = orders(MemoryCatalog(environment=fake_environment()))
    assert table.log is not None
    log = BreakingLog(table.log)
    mortal = reopened(table, log)
    mortal.append(rows("+I a 1 1"))
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        mortal.append(rows("+U a 1 2"))
    early, late = (table.stream(normalize="lookup", startup=startup) for startup in ("latest", "full"))
    received = [_polled(source) for source in (early, late)]
    assert received == [[], ["+I a 1 2"]]
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(3600)
    table.append(rows("+U a 1 3"))

    assert _polled(early) == ["-U a 1 1", "+U a 1 2", "-U a 1 2", "+U a 1 3"]
    assert _polled(late) == ["-U a 1 2", "+U a 1 3"]


def test_a_stream_that_begins_with_what_the_log_was_not_told_follows_upon_that() -> None:
    table = orders(None, **{"scan.normalize": "lookup"})
    table.append(rows("+I a 1 1"))
    table.append(rows("+U a 1 5"), change_tracking=False)
    source = table.stream()
    first = source.poll()
    table.compact()
    table.append(rows("+U a 1 7"))

    second = source.poll()

    assert first is not None
    assert second is not None
    assert [*_texts(first), *_texts(second)] == ["+I a 1 5", "-U a 1 5", "+U a 1 7"]


def test_a_stream_whose_snapshots_were_expired_is_told_so() -> None:
    table = orders()
    table.append(rows("+I a 1 1"))
    source = table.stream(normalize="lookup")
    source.poll()
    for price in range(2, 6):
        table.append(rows(f"+U a 1 {price}"))
    table.maintenance.expire_snapshots(retain_last=1)

    with pytest.raises(SnapshotExpiredError, match=r"consumers\.create.*scan\.normalize=none"):
        source.poll()


def test_a_consumer_keeps_what_a_stream_has_to_look_up() -> None:
    table = orders()
    table.append(rows("+I a 1 1"))
    source = table.stream(normalize="lookup")
    source.poll()
    assert source.position is not None
    table.consumers.create("downstream", source.position.snapshot_id)
    for price in range(2, 6):
        table.append(rows(f"+U a 1 {price}"))
    table.maintenance.expire_snapshots(retain_last=1)

    batch = source.poll()

    assert batch is not None
    assert batch.num_rows == 8


def test_tables_without_key_and_logs_with_old_rows_are_complete_as_they_are() -> None:
    complete = orders(None, **{"log.changelog-mode": "all"})
    complete.append(rows("+I a 1 1"))
    complete.append(rows("+U a 1 2"))
    complete.append(rows("+U a 1 3"))
    source = complete.stream(normalize="lookup", startup="latest")

    assert streamed(complete) == ["+I a 1 1", "-U a 1 1", "+U a 1 2", "-U a 1 2", "+U a 1 3"]
    assert source.poll() is None


def test_a_merged_table_tells_old_rows_too() -> None:
    table = orders(None, **{"log.system": "none", "merge-engine": "partial-update", "scan.normalize": "lookup"})
    source = table.stream()
    source.poll()
    received: list[str] = []
    for change in ("+I a 1 1", "+I a 1 -", "+I a 1 3"):
        table.append(rows(change))
        batch = source.poll()
        received += [] if batch is None else _texts(batch)

    assert received == ["+I a 1 1", "-U a 1 1", "+U a 1 3"]


@pytest.mark.parametrize("producer", ["none", "lookup"])
def test_a_key_that_moves_to_another_partition_is_retracted_with_its_old_row(producer: str) -> None:
    # The deletion in the old partition is stored with the values of the new row.
    columns = {"p": "STRING", "k": "BIGINT", "n": "BIGINT"}
    options = {"bucket": "-1", "changelog-producer": producer, "log.system": "none", "write-only": "true"}
    table = MemoryCatalog().create_table("shop.moved", columns, primary_key=["k"], partition_by=["p"], options=options)
    table.append([{"p": "a", "k": 1, "n": 1}])
    source = table.stream(normalize="lookup")
    source.poll()

    table.append([{"p": "b", "k": 1, "n": 2}])

    change = source.poll()
    assert change is not None
    assert [tuple(row.values()) for row in change.to_pylist()] == [("a", 1, 1, "-D"), ("b", 1, 2, "+I")]


def test_what_is_no_way_to_normalise_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"scan\.normalize=always is none of none, lookup, state"):
        orders().stream(normalize="always")
