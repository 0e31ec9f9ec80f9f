"""Which files a plan skips, and that skipping never changes the result."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from storage_lib.errors import CorruptFileError, InvalidInputError, SnapshotExpiredError
from storage_lib.file_store.manifest.manifest_file import encode_manifest
from storage_lib.file_store.planning.plan import Plan
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.table_schema import new_table_schema
from storage_lib.schema.types.data_types import parse_data_type
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.stored_table import StoredTable, orders_schema


def plan_of(table: StoredTable, predicate: Predicate | None = None, **options: Any) -> Plan:
    return table.store.scan.plan(table.store.snapshots.latest(), predicate=predicate, **options)


def days_of(table: StoredTable, plan: Plan) -> set[str]:
    return {table.store.scan.partition_text(entry.partition) for entry in plan.entries}


@pytest.fixture
def days(table: StoredTable) -> StoredTable:
    """Create three days of orders, each in its own commit, ids 0..19, both buckets."""
    for index, day in enumerate(("d1", "d2", "d3")):
        table.append([(day, n, f"item {100 * index + n:04d}") for n in range(20)])
    return table


def test_a_table_without_a_commit_plans_nothing(table: StoredTable) -> None:
    plan = plan_of(table)
    assert plan.entries == ()
    assert plan.splits() == ()


def test_a_filter_on_the_partition_leaves_other_partitions_out(days: StoredTable) -> None:
    assert days_of(days, plan_of(days, col("dt") == "d2")) == {"dt=d2"}
    assert days_of(days, plan_of(days, (col("dt") > "d1") & (col("item") != "x"))) == {"dt=d2", "dt=d3"}
    assert days_of(days, plan_of(days, partition_filter=col("dt").isin(["d1", "d3"]))) == {"dt=d1", "dt=d3"}
    assert plan_of(days, col("dt") == "d9").entries == ()


def test_a_filter_beside_the_partition_does_not(days: StoredTable) -> None:
    assert len(days_of(days, plan_of(days, (col("dt") == "d2") | (col("id") == 3)))) == 3


def test_a_partition_filter_on_other_columns_is_refused(days: StoredTable) -> None:
    with pytest.raises(InvalidInputError, match=r"'id'.*not a partition column"):
        plan_of(days, partition_filter=col("id") == 3)


def test_a_filter_on_an_unknown_column_is_refused(days: StoredTable) -> None:
    with pytest.raises(InvalidInputError, match="nowhere"):
        plan_of(days, col("nowhere") == 3)


def test_a_key_named_by_the_filter_is_looked_for_in_its_bucket_only(days: StoredTable) -> None:
    plan = plan_of(days, (col("dt") == "d1") & (col("id") == 3))
    assert len({entry.bucket for entry in plan.entries}) == 1
    assert days.rows(predicate=(col("dt") == "d1") & (col("id") == 3)) == [("d1", 3, "item 0003")]


@pytest.mark.parametrize("key", range(20))
def test_every_key_is_found_where_it_is_looked_for(days: StoredTable, key: int) -> None:
    rows = days.rows(predicate=col("id") == key)
    assert [row[1] for row in rows] == [key] * 3
    assert days.rows(predicate=col("id").isin([key, 99])) == rows


def test_files_whose_keys_are_out_of_range_are_left_out(table: StoredTable) -> None:
    for start in (0, 100, 200):
        table.append([("a", start + n, "x") for n in range(20)])
    assert len(plan_of(table, col("id").between(105, 110)).entries) == 2
    assert len(table.rows(predicate=col("id").between(105, 110))) == 6


def test_bounds_of_values_leave_a_file_out_that_is_alone_with_its_keys(days: StoredTable) -> None:
    days.compact()
    plan = plan_of(days, col("item") == "item 0105")
    assert days_of(days, plan) == {"dt=d2"}
    assert days.rows(predicate=col("item") == "item 0105") == [("d2", 5, "item 0105")]


def test_a_newer_version_that_does_not_match_still_hides_the_older_that_does(table: StoredTable) -> None:
    """L4: if the newer file were skipped by its values, the old row would reappear."""
    table.append([("a", 1, "old")])
    table.append([("a", 1, "zzz")])
    assert len(plan_of(table, col("item") == "old").entries) == 2
    assert table.rows(predicate=col("item") == "old") == []


def test_a_deletion_still_hides_the_row_it_deletes(table: StoredTable) -> None:
    table.append([("a", 1, "old")])
    table.append([("a", 1, None)], [RowKind.DELETE])
    assert table.rows(predicate=col("item") == "old") == []
    assert table.rows(predicate=col("id") == 1) == []


def test_buckets_can_be_asked_for(days: StoredTable) -> None:
    plan = plan_of(days, buckets={1})
    assert {entry.bucket for entry in plan.entries} == {1}


def test_whatever_is_left_out_the_answer_is_that_of_a_full_scan() -> None:
    """Random tables and filters; a failure message contains the seed that reproduces it."""
    for seed in range(12):
        random = np.random.default_rng(seed)
        table = StoredTable(orders_schema({"manifest.merge-min-count": "3"}), fake_environment())
        for _ in range(int(random.integers(1, 8))):
            rows = [
                (str(random.choice(["a", "b", "c"])), int(random.integers(0, 12)), str(random.choice(["p", "q", "r"])))
                for _ in range(int(random.integers(1, 8)))
            ]
            kinds = [RowKind.DELETE if random.random() < 0.25 else RowKind.INSERT for _ in rows]
            table.append(rows, kinds)
            if random.random() < 0.3:
                table.compact(full=bool(random.random() < 0.5))
        everything = table.rows()
        simple = [
            col("dt") == "a", col("dt") != "b", col("id") == 3, col("id") > 6, col("id").isin([1, 2, 3]),
            col("item") == "q", col("item") < "q", col("item").is_null(), ~(col("id") == 3),
        ]  # fmt: skip
        pairs = itertools.combinations(simple, 2)
        for predicate in [*simple, *(a & b for a, b in pairs), *(a | b for a, b in itertools.combinations(simple, 2))]:
            mask = predicate.mask(table.batch(everything)).to_pylist()
            expected = [row for row, passes in zip(everything, mask, strict=True) if passes]
            assert table.rows(predicate=predicate) == expected, (seed, predicate)
            assert table.rows(predicate=predicate, target_size=1) == expected, (seed, predicate)


class TestSplits:
    def test_a_bucket_is_cut_where_no_key_is_on_both_sides(self, table: StoredTable) -> None:
        for start in (0, 100, 200):
            table.append([("a", start + n, "x") for n in range(20)])
            table.append([("a", start + n, "y") for n in range(5)])
        plan = plan_of(table)
        assert len(plan.splits()) == 2
        splits = plan.splits(1)
        assert len(splits) == 6
        assert all(len(split.files) == 2 for split in splits)
        assert len(table.rows(target_size=1)) == 60

    def test_splits_of_about_the_target_size(self, table: StoredTable) -> None:
        for start in range(10):
            table.append([("a", 100 * start + n, "x") for n in range(20)])
        plan = plan_of(table, buckets={0})
        target = plan.size_bytes // 3
        sizes = [split.size_bytes for split in plan.splits(target)]
        assert len(sizes) in (3, 4)
        assert max(sizes) <= target
        assert sum(sizes) == plan.size_bytes

    def test_their_order_is_the_same_for_every_plan(self, days: StoredTable) -> None:
        again = days.reopened()
        assert plan_of(days).splits(1) == again.scan.plan(again.snapshots.latest()).splits(1)


class TestHistory:
    def test_every_snapshot_stays_readable(self, days: StoredTable) -> None:
        days.compact()
        days.append([("d1", 0, "changed")])
        store = days.reopened()
        counts = [len(days.rows(store.snapshots.load(n), store=store)) for n in (5, 1, 3, 2, 4)]
        assert counts == [60, 20, 60, 40, 60]

    def test_following_a_stream_reads_only_what_is_new(self) -> None:
        files = FaultyFileIO(MemoryFileIO())
        writer = StoredTable(orders_schema(), fake_environment(files, names="writer"))
        reader = StoredTable(orders_schema(), fake_environment(files, names="reader"))
        reads = []
        for n in range(40):
            writer.append([("a", n, "x")])
            before = len(files.calls)
            plan_of(reader)
            reads.append(sum(operation == "read_bytes" for operation, _ in files.calls[before:]))
        assert max(reads[1:]) <= 5

    def test_a_plan_of_an_expired_snapshot_says_so(self, days: StoredTable) -> None:
        first = days.store.snapshots.load(1)
        other = days.reopened()
        days.store.expire.expire(retain_max=1)
        with pytest.raises(SnapshotExpiredError, match="snapshot 1"):
            other.scan.plan(first)

    def test_what_one_snapshot_changed(self, days: StoredTable) -> None:
        delta = days.store.scan.delta(days.store.snapshots.load(2))
        assert {days.store.scan.partition_text(entry.partition) for entry in delta} == {"dt=d2"}


def test_of_a_very_large_table_only_manifests_of_the_partition_are_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage_lib.file_store.scan._LIVE_ENTRIES_MAX", 0)
    files = FaultyFileIO(MemoryFileIO())
    writer = StoredTable(orders_schema(), fake_environment(files, names="writer"))
    for n in range(10):
        writer.append([(f"d{n}", 1, "x")])
    reader = StoredTable(orders_schema(), fake_environment(files, names="reader"))
    before = len(files.calls)
    assert reader.rows(predicate=col("dt") == "d7") == [("d7", 1, "x")]
    opened = [
        path for operation, path in files.calls[before:] if operation == "read_bytes" and "/manifest-name" in path
    ]
    assert len(opened) <= 1
    writer.overwrite([], partition_filter=col("dt") == "d3")
    assert len(reader.rows()) == 9
    assert writer.append([("d3", 1, "again")]).total_record_count == 10


def test_a_manifest_that_lost_entries_is_corrupt(table: StoredTable) -> None:
    table.append([("a", 1, "x"), ("b", 2, "y")])
    latest = table.store.snapshots.latest()
    assert latest is not None
    (manifest,) = table.store._manifests.read_list(latest.delta_manifest_list)
    table.environment.file_io.replace(table.paths.manifest_path(manifest.file_name), encode_manifest([]))
    other = table.reopened()
    with pytest.raises(CorruptFileError, match="truncated: 0 entries, but the manifest list says 2"):
        other.scan.plan(latest)


def moment(*parts: int) -> dt.datetime:
    """Return a TIMESTAMP, which has no time zone."""
    return dt.datetime(*parts, tzinfo=dt.UTC).replace(tzinfo=None)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize("spelled", ["INT", "STRING", "DATE", "BOOLEAN", "DECIMAL(10, 2)", "TIMESTAMP(6)", "DOUBLE"])
def test_partitions_of_any_type_are_pruned_by_exact_bounds(spelled: str) -> None:
    values: dict[str, list[Any]] = {
        "INT": [-5, 0, 300],
        "STRING": ["", "a", "ü" * 30],
        "DATE": [dt.date(1969, 1, 1), dt.date(2024, 5, 14), dt.date(2024, 5, 15)],
        "BOOLEAN": [False, True],
        "DECIMAL(10, 2)": [Decimal("-1.50"), Decimal("0.00"), Decimal("99.99")],
        "TIMESTAMP(6)": [moment(1969, 1, 1, 0, 0, 0, 1), moment(2024, 5, 14, 1, 2, 3, 456789)],
        "DOUBLE": [-1.5, 0.0, 1e10],
    }
    schema = new_table_schema(
        [("p", parse_data_type(spelled)), ("id", parse_data_type("INT"))],
        primary_keys=["p", "id"],
        partition_keys=["p"],
        options={"bucket": "1"},
        time_millis=0,
    )
    table = StoredTable(schema, fake_environment())
    table.append([(value, 1) for value in values[spelled]])
    for value in values[spelled]:
        assert table.rows(predicate=col("p") == value) == [(value, 1)]
        plan = plan_of(table, col("p") == value)
        assert len(plan.entries) == 1
