"""Incremental reads return the changes between two snapshots or two times, and read no other files."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, MemoryCatalog, NotFoundError, SnapshotExpiredError
from tests.support.deep_tests import thinned
from tests.support.fake_environment import STARTED_MILLIS, FakeClock, fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import COLUMNS, applied, orders, reopened, rows

HOUR = 3_600_000


def told(table: DynamicTable, **which: Any) -> list[str]:
    """Return the changes as ``"+I a 1 10"``, read through pickled splits as by an engine's tasks."""
    which = {
        {"start": "start_snapshot_id", "end": "end_snapshot_id"}.get(key, key): value for key, value in which.items()
    }
    splits = pickle.loads(pickle.dumps(table.new_read().plan_changes(**which)))  # noqa: S301  our own
    batches = [row for split in splits for batch in table.new_read().read_changes(split) for row in batch.to_pylist()]
    assert table.changes(**which).read_all().to_pylist() == batches
    return [f"{row['_row_kind']} {row['dt']} {row['id']} {row['price']}" for row in batches]


def content_at(table: DynamicTable, snapshot_id: int) -> set[str]:
    if snapshot_id == 0:
        return set()
    found = table.to_arrow(snapshot_id=snapshot_id).to_pylist()
    return {f"{row['dt']} {row['id']} {row['price']}" for row in found}


def applied_to(content: set[str], changes: list[str]) -> set[str]:
    return applied([*(f"+I {row}" for row in content), *changes])


@pytest.fixture
def lived() -> DynamicTable:
    """Create a table: 1 and 2 append, 3 compacts, 4 appends, 5 replaces day a, 6 appends."""
    table = orders(None, **{"log.system": "none"})
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.append(rows("+U a 1 11", "-D b 2 20"))
    table.compact()
    table.append(rows("+U a 1 12", "+I b 3 30"))
    table.overwrite(rows("+I a 1 12", "+I a 9 90"))
    table.append(rows("+U b 3 31"))
    return table


def test_the_net_change_is_at_most_one_a_key(lived: DynamicTable) -> None:
    assert told(lived, start=0, end=2) == ["+U a 1 11", "-D b 2 20"]
    assert told(lived, start=1, end=4) == ["+U a 1 12", "-D b 2 20", "+I b 3 30"]
    assert told(lived, start=2, end=3) == []
    assert told(lived, start=4, end=6) == ["+I a 9 90", "+U b 3 31"]
    assert told(lived, start=6) == []


def test_every_change_is_told_in_the_order_of_commits(lived: DynamicTable) -> None:
    assert told(lived, start=0, mode="every") == [
        "+I a 1 10", "+U a 1 11", "+U a 1 12", "+I a 9 90",
        "+I b 2 20", "-D b 2 20", "+I b 3 30", "+U b 3 31",
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["net", "every"])
@pytest.mark.parametrize("seed", thinned(range(6), keep=2))
def test_applied_to_the_start_the_changes_give_the_end(mode: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    table = orders(None, **{"log.system": "none", "bucket": "2"})
    for _ in range(9):
        changes = [
            f"{random.choice(['+I', '+U', '-D'])} {random.choice(['a', 'b'])} {random.integers(5)} {random.integers(9)}"
            for _ in range(int(random.integers(1, 5)))
        ]
        match random.integers(0, 6):
            case 0:
                table.compact(full=bool(random.integers(0, 2)))
            case 1:
                table.overwrite(rows(*(f"+I a {each.split()[2]} 7" for each in changes)))
            case 2 if (table.context.file_store.snapshots.latest_id() or 0) > 1:
                table.rollback_to(snapshot_id=1)
            case _:
                table.append(rows(*changes))
    newest = table.context.file_store.snapshots.latest_id() or 0
    for start in range(newest + 1):
        for end in range(start, newest + 1):
            changes = told(table, start=start, end=end, mode=mode)
            assert applied_to(content_at(table, start), changes) == content_at(table, end), (seed, start, end)
            if mode == "net":
                keys = [tuple(change.split()[1:3]) for change in changes]
                assert len(keys) == len(set(keys))


def test_hours_tile_the_day_each_change_is_in_exactly_one() -> None:
    table = orders(None, **{"log.system": "none"})
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    expected = []
    for n in range(12):
        table.append(rows(f"+I a {n} {n}"))
        expected.append(f"+I a {n} {n}")
        clock.pass_time(HOUR / 1000 / 4)
    tiles = [
        told(
            table,
            start_timestamp=STARTED_MILLIS + n * HOUR,
            end_timestamp=STARTED_MILLIS + (n + 1) * HOUR,
        )
        for n in range(-1, 5)
    ]
    assert [len(tile) for tile in tiles] == [0, 4, 4, 4, 0, 0]
    assert [change for tile in tiles for change in tile] == expected
    assert told(table, start_timestamp=STARTED_MILLIS + 2 * HOUR) == expected[8:]


def test_an_hour_reads_just_its_files() -> None:
    """Neither the large compacted file nor the other hours' files are opened."""
    table = orders(None, **{"log.system": "none", "write-only": "true"})
    table.append(rows(*(f"+I a {n} 1" for n in range(500))))
    table.compact()
    for n in range(5):
        table.append(rows(f"+U a {n} 2"))
    counted = FaultyFileIO(table.environment.file_io)
    reader = reopened_in(counted, table, names="reader")

    assert told(reader, start=4, end=5) == ["+U a 2 2"]

    opened = {path for operation, path in counted.calls if operation == "open_input"}
    assert len(opened) == 1


def test_what_has_expired_is_said_to_be() -> None:
    table = orders(None, **{"log.system": "none", "write-only": "true"})
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    for n in range(5):
        table.append(rows(f"+I a {n} {n}"))
        clock.pass_time(60)
    table.maintenance.expire_snapshots(retain_last=3)

    assert told(table, start=2, end=3) == ["+I a 2 2"]
    with pytest.raises(SnapshotExpiredError):
        told(table, start=1, end=3)
    complaint = r"the earliest snapshot kept is 3, made at 20\d\d-\d\d-\d\d \d\d:.*\+00:00;"
    with pytest.raises(SnapshotExpiredError, match=complaint):
        told(table, start_timestamp=STARTED_MILLIS + 60_000)
    assert told(table, start_timestamp=STARTED_MILLIS + 121_000) == ["+I a 3 3", "+I a 4 4"]


def test_a_range_that_is_none_is_refused(lived: DynamicTable) -> None:
    with pytest.raises(InvalidInputError, match="go backwards"):
        lived.changes(start_snapshot_id=3, end_snapshot_id=2)
    with pytest.raises(InvalidInputError, match="go backwards"):
        lived.changes(start_timestamp=3, end_timestamp=2)
    with pytest.raises(InvalidInputError, match="by snapshot"):
        lived.changes()
    with pytest.raises(InvalidInputError, match="by snapshot"):
        lived.changes(start_snapshot_id=1, end_timestamp=5)
    with pytest.raises(InvalidInputError, match="net or every"):
        lived.changes(start_snapshot_id=1, mode="some")
    with pytest.raises(NotFoundError, match="snapshot 7"):
        lived.changes(start_snapshot_id=1, end_snapshot_id=7)


def test_an_empty_table_has_no_changes() -> None:
    table = orders(None, **{"log.system": "none"})
    assert told(table, start=0) == []
    assert told(table, start_timestamp=0) == []


def test_the_changes_of_a_branch_are_its_own(lived: DynamicTable) -> None:
    lived.branches.create("dev")
    dev = lived.branches.open("dev")
    dev.append(rows("+I c 1 1"))
    assert told(dev, start=6) == ["+I c 1 1"]
    assert told(reopened(lived), start=6) == []


def test_rows_without_a_key_are_counted() -> None:
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    columns = pa.schema([("x", pa.int64()), ("y", pa.string())])
    table = catalog.create_table("db.t", columns, options={"write-mode": "append-only"})

    def append(*values: int | None) -> None:
        table.append(pa.table({"x": values, "y": ["z"] * len(values)}, schema=columns))

    def of(changes: pa.RecordBatchReader) -> list[tuple[str, int | None]]:
        return sorted(((row["_row_kind"], row["x"]) for row in changes.read_all().to_pylist()), key=repr)

    append(1, 1, None)
    append(2)
    table.overwrite(pa.table({"x": [1, 2, 3], "y": ["z"] * 3}, schema=columns), partition={})
    assert of(table.changes(start_snapshot_id=0, end_snapshot_id=2)) == [("+I", 1), ("+I", 1), ("+I", 2), ("+I", None)]
    assert of(table.changes(start_snapshot_id=1, end_snapshot_id=2)) == [("+I", 2)]
    expected = [("+I", 2), ("+I", 3), ("-D", 1), ("-D", None)]
    assert of(table.changes(start_snapshot_id=1)) == expected
    assert of(table.changes(start_snapshot_id=2, mode="every")) == [("+I", 3), ("-D", 1), ("-D", None)]
    table.rollback_to(snapshot_id=1)
    assert table.to_arrow()["x"].to_pylist() == [1, 1, None]
    with pytest.raises(InvalidInputError, match="append-only"):
        table.rollback_to(snapshot_id=2, change_tracking=True)


@pytest.mark.parametrize("mode", ["net", "every"])
@pytest.mark.parametrize("key", [["dt", "id"], []])
def test_an_overwrite_of_what_was_empty_is_told_as_well(mode: str, key: list[str]) -> None:
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    table = catalog.create_table("shop.orders", COLUMNS, primary_key=key, partition_by=["dt"])
    table.overwrite(rows("+I a 1 10"), partition={}, change_tracking=False)
    table.overwrite(rows("+I b 2 20"), change_tracking=False)

    assert told(table, start=0, mode=mode) == ["+I a 1 10", "+I b 2 20"]
    assert table.inspect.snapshots()["commit_kind"].to_pylist() == ["OVERWRITE", "OVERWRITE"]


def test_the_newest_change_of_zeros_of_both_signs_is_told_for_each() -> None:
    catalog = MemoryCatalog({"log.system": "none"}, environment=fake_environment())
    table = catalog.create_table("shop.floats", {"key": "DOUBLE"}, primary_key=["key"])
    for key in (0.0, -0.0, 0.0):
        table.append(pa.table({"key": [key]}))

    changes = table.changes(start_snapshot_id=0, mode="net").read_all()["key"].to_pylist()

    assert sorted(map(str, changes)) == ["-0.0", "0.0"]


def test_who_remembers_an_expired_snapshot_is_told_that_it_was_expired() -> None:
    # Given: a range whose end is retained, and whose start was read before its expiry.
    options = {"merge-engine": "aggregation", "fields.price.aggregate-function": "sum", "log.system": "none"}
    table = orders(None, **options)
    for price in "12":
        table.append(rows(f"+I a 1 {price}"))
    table.compact()
    table.append(rows("+I a 1 3"))
    assert told(table, start=2) == ["+U a 1 6"]
    reopened(table).maintenance.expire_snapshots(retain_last=1)

    with pytest.raises(SnapshotExpiredError, match=r"snapshot 2 .*has been expired; the earliest kept is 4"):
        told(table, start=2)


def test_a_key_that_moved_is_there_after_every_change() -> None:
    table = MemoryCatalog().create_table(
        "shop.moved",
        {"p": "STRING", "k": "BIGINT"},
        primary_key=["k"],
        partition_by=["p"],
        options={"bucket": "-1", "log.system": "none"},
    )
    table.append([{"p": "b", "k": 1}])

    table.append([{"p": "a", "k": 1}])
    table.append([{"p": "b", "k": 1}])

    changes = table.changes(start_snapshot_id=1, mode="every").read_all()
    assert [row["_row_kind"] for row in changes.to_pylist()] == ["-D", "+I", "-D", "+I"]
    assert changes.to_pylist()[-1]["p"] == "b"
