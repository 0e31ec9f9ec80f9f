"""Tables without a primary key through the file store's verbs: rows are counted, and counts are never lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.value_count.counted_rows import ROWS_MAX, repeated
from storage_lib.file_store.value_count.value_count_schema import ValueCountSchema
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.types.row_kind import RowKind
from tests.support.counted_tables import counted_schema
from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable, committable_of

INSERT, DELETE = RowKind.INSERT, RowKind.DELETE


@pytest.fixture
def table() -> StoredTable:
    return StoredTable(counted_schema(), fake_environment())


def stored(table: StoredTable) -> list[tuple[Any, ...]]:
    """Return the rows of the single live data file: kind, columns, count."""
    (entry,) = table.store.scan.plan(table.store.snapshots.latest()).entries
    path = f"{table.root}/bucket-0/{entry.file.file_name}"
    with table.environment.file_io.open_input(path) as source:
        rows = pq.read_table(source).drop_columns(["_SEQUENCE_NUMBER"]).to_pylist()
    return [tuple(row.values()) for row in rows]


def test_its_columns_are_at_no_moment_those_of_a_table_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cached property called through super() first stores a value without the count, which threads could see."""
    for name in ("kv_arrow_schema", "file_arrow_schema"):
        inherited = vars(KeyValueSchema)[name].func
        columns: list[set[str]] = []

        def noting(
            layout: KeyValueSchema,
            inherited: Callable[[KeyValueSchema], pa.Schema] = inherited,
            columns: list[set[str]] = columns,
        ) -> pa.Schema:
            made: pa.Schema = inherited(layout)
            columns.append(set(made.names))
            return made

        monkeypatch.setattr(vars(KeyValueSchema)[name], "func", noting)
        assert "_VALUE_COUNT" in getattr(ValueCountSchema(schema=counted_schema()), name).names
        assert all("_VALUE_COUNT" in each for each in columns)


def test_equal_rows_are_one_row_with_a_count_and_read_as_many(table: StoredTable) -> None:
    table.append([(1, "a"), (2, None), (1, "a"), (None, None), (1, "a")])
    assert stored(table) == [(0, None, None, 1), (0, 1, "a", 3), (0, 2, None, 1)]
    assert table.rows() == sorted([(1, "a")] * 3 + [(2, None), (None, None)], key=repr)


def test_a_sum_of_zero_vanishes_already_in_memory(table: StoredTable) -> None:
    assert table.messages([(1, "a"), (1, "a")], [INSERT, DELETE]) == ()
    table.append([(1, "a"), (2, "b"), (1, "a")], [INSERT, INSERT, RowKind.UPDATE_BEFORE])
    assert stored(table) == [(0, 2, "b", 1)]


def test_a_deletion_that_comes_first_is_owed_through_every_compaction(table: StoredTable) -> None:
    table.append([(1, "a"), (1, "a"), (2, "b")], [DELETE, DELETE, INSERT])
    table.append([(3, "c")])
    assert table.rows() == [(2, "b"), (3, "c")]
    table.compact()
    assert stored(table) == [(3, 1, "a", -2), (0, 2, "b", 1), (0, 3, "c", 1)]
    assert table.rows() == [(2, "b"), (3, "c")]
    table.append([(1, "a")])
    table.compact()
    assert table.rows() == [(2, "b"), (3, "c")]
    table.append([(1, "a"), (1, "a")])
    assert table.rows() == [(1, "a"), (2, "b"), (3, "c")]
    table.compact()
    assert stored(table) == [(0, 1, "a", 1), (0, 2, "b", 1), (0, 3, "c", 1)]


def test_a_compacted_table_has_nothing_left_to_compact(table: StoredTable) -> None:
    table.append([(1, "a")], [DELETE])
    table.append([(2, "b")])
    table.compact()
    assert table.compact() is None


def test_not_a_number_and_both_zeros_meet_their_equals_in_one_bucket() -> None:
    schema = counted_schema({"bucket": "4"}, columns="x DOUBLE; y FLOAT")
    table = StoredTable(schema, fake_environment())
    other_nan = np.uint64(0x7FF8_0000_0000_0123).view(np.float64).item()
    table.append([(math.nan, 0.0), (0.0, -0.0), (-0.0, 0.0)])
    table.append([(other_nan, -0.0), (0.0, 0.0)], [DELETE, DELETE])
    assert table.rows() in ([(0.0, 0.0)], [(0.0, -0.0)], [(-0.0, 0.0)], [(-0.0, -0.0)])
    table.compact()
    assert len(table.rows()) == 1


def test_nested_rows_are_counted_and_told_apart() -> None:
    fields = [
        pa.field("tags", pa.list_(pa.string())),
        pa.field("by", pa.map_(pa.string(), pa.int64())),
        pa.field("at", pa.struct([("x", pa.float64())])),
    ]
    from storage_lib.schema.table_schema import new_table_schema

    options = {"bucket": "3", "merge-engine": "value-count"}
    table = StoredTable(new_table_schema(pa.schema(fields), options=options, time_millis=0), fake_environment())
    one = (["a", None], [("k", 1), ("l", None)], {"x": math.nan})
    same = (["a", None], [("l", None), ("k", 1)], {"x": math.nan})
    other = (["a"], [("k", 1), ("l", None)], {"x": None})
    table.append([one, same, other, (None, None, None)])
    assert len(table.rows()) == 4
    table.append([same, one, other], [DELETE, DELETE, DELETE])
    table.compact()
    assert table.rows() == [(None, None, None)]


def test_a_count_of_many_is_read_in_batches_of_bounded_size(table: StoredTable) -> None:
    table.append([(1, "a"), *[(2, "b")] * (2 * ROWS_MAX + 7), (3, "c")])
    assert stored(table)[1] == (0, 2, "b", 2 * ROWS_MAX + 7)
    (split,) = table.store.scan.plan(table.store.snapshots.latest()).splits()
    batches = list(table.store.read.read(split))
    assert [batch.num_rows for batch in batches] == [ROWS_MAX, ROWS_MAX, 9]
    assert Counter(row["id"] for batch in batches for row in batch.to_pylist())[2] == 2 * ROWS_MAX + 7


def test_rows_that_are_there_once_are_handed_on_as_they_are() -> None:
    rows = pa.RecordBatch.from_pydict({"id": [1, 2]})
    assert list(repeated(rows, np.array([1, 1]))) == [rows]
    assert list(repeated(rows, np.array([0, 0]))) == []


def test_a_filter_leaves_files_out_by_their_values_though_runs_overlap(table: StoredTable) -> None:
    table.append([(1, "a"), (9, "z")])
    table.append([(1, "a"), (9, "z"), (5, "m")])
    plan = table.store.scan.plan(table.store.snapshots.latest(), predicate=col("item") == "m")
    assert len(plan.entries) == 2
    table.append([(5, "mm"), (6, "n")])
    plan = table.store.scan.plan(table.store.snapshots.latest(), predicate=col("id") == 1)
    assert len(plan.entries) == 2
    assert table.rows(predicate=col("id") == 1, columns=["item"]) == [("a",), ("a",)]


def test_long_rows_have_short_bounds_and_are_found_and_merged() -> None:
    table = StoredTable(counted_schema({"target-file-size": "16 kb"}), fake_environment())
    same = "x" * 2000
    rows = [(7, same + f"{n:06}") for n in range(600)]
    table.append(rows)
    table.append(rows[::2], [DELETE] * 300)
    table.append([(7, "\xff" * 400), (7, "y" * 400)])
    for entry in table.store.scan.plan(table.store.snapshots.latest()).entries:
        assert len(entry.file.min_key) < 400
        assert len(entry.file.max_key) < 400
    expected = sorted([*rows[1::2], (7, "\xff" * 400), (7, "y" * 400)], key=repr)
    assert table.rows(target_size=1) == expected
    table.compact()
    assert table.rows() == expected
    table.append(rows[1::2], [DELETE] * 300)
    table.compact()
    assert len(table.rows()) == 2


def test_bounds_of_long_rows_hold_all_of_them() -> None:
    table = StoredTable(counted_schema(), fake_environment())
    rows = [(7, "x" * 2000 + tail) for tail in ("", "a", "\xff" * 9)]
    (message,) = table.messages(rows)
    (file,) = message.increment.new_files
    layout = ValueCountSchema(schema=table.schema)
    keys = [layout.comparable_key(layout.key_bytes(table.batch(rows), index)) for index in range(3)]
    assert layout.comparable_key(file.min_key) <= min(keys)
    assert layout.comparable_key(file.max_key) >= max(keys)


def test_runs_of_one_level_may_overlap_as_those_of_two_tasks_of_one_overwrite_do(table: StoredTable) -> None:
    table.append([(9, "old")])
    messages: list[CommitMessage] = []
    for block in range(2):
        write = table.store.new_write(table.store.snapshots.latest(), overwrite=True, sequence_block=block)
        table.fill(write, [(1, "a"), (5, f"task {block}")])
        messages += write.prepare_commit()
    table.store.commit.overwrite(committable_of(messages))
    assert table.files() == ["0/5/2", "0/5/2"]
    assert table.rows() == [(1, "a"), (1, "a"), (5, "task 0"), (5, "task 1")]
    table.append([(1, "a")], [DELETE])
    table.compact()
    assert table.rows() == [(1, "a"), (5, "task 0"), (5, "task 1")]


def test_what_others_appended_meanwhile_is_added_to_an_overwrite(table: StoredTable) -> None:
    table.append([(1, "a"), (1, "a")])
    table.overwrite([(2, "b"), (2, "b"), (3, "c"), (3, "c")])
    table.append([(2, "b"), (3, "c")], [INSERT, DELETE])
    assert table.rows() == [(2, "b")] * 3 + [(3, "c")]


def test_an_overwrite_larger_than_memory_counts_over_all_of_it() -> None:
    table = StoredTable(counted_schema({"write-buffer-size": "16 kb"}), fake_environment())
    table.overwrite([(n % 700, f"item {n % 700}") for n in range(2100)])
    assert {file.split("/")[1] for file in table.files()} == {"5"}
    assert table.rows() == sorted([(n % 700, f"item {n % 700}") for n in range(2100)], key=repr)


def test_random_cuts_into_commits_and_compactions_lead_to_the_same_multiset() -> None:
    random = np.random.default_rng(11)
    for buckets, file_format in (("1", "parquet"), ("3", "orc")):
        options = {"bucket": buckets, "write-buffer-size": "4 kb", "file.format": file_format}
        table = StoredTable(counted_schema(options), fake_environment())
        counted: Counter[tuple[int | None, str | None]] = Counter()
        for round_ in range(25):
            rows = [
                (None if n % 11 == 0 else int(n % 7), None if n % 5 == 0 else f"v{n % 3}")
                for n in random.integers(0, 100, int(random.integers(1, 60)))
            ]
            kinds = [DELETE if each else INSERT for each in random.random(len(rows)) < 0.4]
            table.append(rows, kinds)
            for row, kind in zip(rows, kinds, strict=True):
                counted[row] += -1 if kind is DELETE else 1
            if round_ % 4 == 3:
                table.compact(full=bool(round_ % 8 == 7))
            assert Counter(table.rows()) == +counted
