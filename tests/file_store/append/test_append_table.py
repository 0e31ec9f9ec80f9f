"""Append tables through the file store's verbs: content of the files, order of rows, and skipped files."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from storage_lib.errors import InvalidInputError
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.types.row_kind import RowKind
from tests.support.append_tables import append_schema
from tests.support.fake_environment import fake_environment
from tests.support.stored_table import StoredTable

EMPTY_KEY = bytes(12)


@pytest.fixture
def table() -> StoredTable:
    return StoredTable(append_schema(), fake_environment())


def in_order(table: StoredTable, predicate: object = None) -> list[object]:
    """Return ids in the order in which they are read."""
    plan = table.store.scan.plan(table.store.snapshots.latest(), predicate=predicate)  # type: ignore[arg-type]
    return [
        row["id"]
        for split in plan.splits()
        for batch in table.store.read.read(split, ["id"], predicate)  # type: ignore[arg-type]
        for row in batch.to_pylist()
    ]


def test_a_data_file_holds_the_tables_columns_and_its_metadata_no_key(table: StoredTable) -> None:
    (message,) = table.messages([("a", 2, "x"), ("a", 1, None)])
    (file,) = message.increment.new_files
    assert (message.bucket, message.bucket_count) == (0, -1)
    assert (file.min_key, file.max_key, file.level, file.delete_row_count) == (EMPTY_KEY, EMPTY_KEY, 0, 0)
    assert (file.key_stats.min_values, file.key_stats.null_counts) == (EMPTY_KEY, ())
    assert (file.min_sequence_number, file.max_sequence_number, file.row_count) == (1, 2, 2)
    with table.environment.file_io.open_input(f"{table.root}/dt=a/bucket-0/{file.file_name}") as source:
        assert pq.ParquetFile(source).schema_arrow.names == ["dt", "id", "item"]


def test_rows_are_read_in_the_order_in_which_they_were_appended_whatever_is_compacted(table: StoredTable) -> None:
    for start in (10, 20, 30, 0):
        table.append([("a", start + n, "x") for n in range(3)])
    expected = [10, 11, 12, 20, 21, 22, 30, 31, 32, 0, 1, 2]
    assert in_order(table) == expected
    table.compact()
    assert table.files() == ["0/0/12"]
    assert in_order(table) == expected
    table.append([("a", 99, "x")])
    assert in_order(table) == [*expected, 99]


def test_equal_rows_are_all_kept(table: StoredTable) -> None:
    for _ in range(2):
        table.append([("a", 1, "x"), ("a", 1, "x")])
    assert len(table.rows()) == 4
    table.compact()
    assert len(table.rows()) == 4


def test_a_file_without_a_match_by_its_statistics_is_left_out(table: StoredTable) -> None:
    for n in range(4):
        table.append([("a", 10 * n, f"item {n}"), ("a", 10 * n + 9, None)])
    plan = table.store.scan.plan(table.store.snapshots.latest(), predicate=col("id") == 25)
    assert len(plan.entries) == 1
    assert table.rows(predicate=col("item") == "item 2", columns=["id"]) == [(20,)]


def test_row_groups_without_a_match_are_not_decoded() -> None:
    table = StoredTable(append_schema(columns="id BIGINT; item STRING", partition_keys=[]), fake_environment())
    table.append([(n, "x") for n in range(100_000)])
    assert table.files() == ["0/0/100000"]
    (split,) = table.store.scan.plan(table.store.snapshots.latest()).splits()
    reader = table.store.read.reader(split.partition, split.bucket)
    read = reader.read(split.files[0], ["id"], predicate=col("id") == 70_000, batch_rows=1_000_000)
    assert sum(batch.num_rows for batch in read) <= 32_768
    assert table.rows(predicate=col("id") == 70_000) == [(70_000, "x")]


def test_every_file_may_be_a_split_of_its_own(table: StoredTable) -> None:
    for n in range(3):
        table.append([("a", n, "x")])
    assert len(table.store.scan.plan(table.store.snapshots.latest()).splits(1)) == 3
    assert len(table.store.scan.plan(table.store.snapshots.latest()).splits()) == 1
    assert table.rows(target_size=1) == [("a", 0, "x"), ("a", 1, "x"), ("a", 2, "x")]


def test_compaction_is_due_by_the_number_of_small_files_and_never_takes_a_large_one() -> None:
    table = StoredTable(append_schema({"target-file-size": "64 kb", "write-buffer-size": "8 mb"}), fake_environment())
    table.append([("a", n, f"{n:0>64}") for n in range(0, 400_000, 7)])
    before = table.files()
    for n in range(4):
        table.append([("a", n, "x")])
    assert table.compact(full=False) is None
    table.append([("a", 4, "x")])
    table.compact(full=False)
    assert table.files() == sorted([*before, "0/0/5"])
    assert table.compact() is None


def test_only_inserts_are_taken_and_nothing_stays_of_a_refused_write(table: StoredTable) -> None:
    write = table.store.new_write(None)
    with pytest.raises(InvalidInputError, match="inserts"):
        table.fill(write, [("a", 1, "x"), ("a", 2, "y")], [RowKind.INSERT, RowKind.DELETE])
    assert write.prepare_commit() == ()


def test_a_null_in_a_column_that_is_not_null_is_refused() -> None:
    table = StoredTable(append_schema(columns="dt STRING; id BIGINT NOT NULL"), fake_environment())
    with pytest.raises(InvalidInputError, match="'id' is NOT NULL"):
        table.append([("a", 1), ("a", None)])


def test_an_aborted_write_leaves_no_file() -> None:
    table = StoredTable(append_schema({"write-buffer-size": "1 kb"}), fake_environment())
    write = table.store.new_write(None)
    table.fill(write, [("a", n, "x" * 100) for n in range(100)])
    assert table.names_on_storage("dt=a/bucket-0")
    write.abort()
    assert table.names_on_storage("dt=a/bucket-0") == []


def test_rows_of_a_full_memory_are_written_in_several_files_in_order() -> None:
    table = StoredTable(append_schema({"write-buffer-size": "4 kb"}), fake_environment())
    write = table.store.new_write(None)
    for n in range(50):
        table.fill(write, [("a", 10 * n + m, "x" * 50) for m in range(10)])
    table.commit(write.prepare_commit())
    assert len(table.files()) > 2
    assert in_order(table) == list(range(500))


def test_appends_side_by_side_on_one_base_are_all_there(table: StoredTable) -> None:
    """No leases: sequence numbers overlap, and no row hides another."""
    messages = [table.messages([("a", n, "x")]) for n in range(3)]
    for each in messages:
        table.commit(each)
    assert in_order(table) == [0, 1, 2]
    table.compact()
    assert in_order(table) == [0, 1, 2]


def test_rows_go_to_the_bucket_of_their_bucket_key() -> None:
    table = StoredTable(append_schema({"bucket": "4", "bucket-key": "id"}), fake_environment())
    table.append([("a", n, "x") for n in range(40)])
    assert len(table.files()) == 4
    assert table.rows(predicate=col("id") == 7) == [("a", 7, "x")]
    plan = table.store.scan.plan(table.store.snapshots.latest(), predicate=col("id") == 7)
    assert len(plan.entries) == 1


@pytest.mark.parametrize(
    ("options", "file_count"),
    [({}, 2), ({"bucket": "1", "bucket-key": "id"}, 3)],
    ids=["in no particular bucket", "in buckets"],
)
def test_small_files_around_a_large_one_are_joined_where_rows_have_no_order_to_keep(
    options: dict[str, str], file_count: int
) -> None:
    table = StoredTable(append_schema({"target-file-size": "16 kb", **options}), fake_environment())
    large = [("a", 20, f"{n * 7919 % 100_003:>12}") for n in range(20_000)]
    for rows in ([("a", 10, "x"), ("a", 11, "x")], large, [("a", 30, "x"), ("a", 31, "x")]):
        table.append(rows)
    table.compact()
    assert len(table.files()) == file_count
    assert [each for each in in_order(table) if each != 20] == [10, 11, 30, 31]


def test_an_overwrite_replaces_and_what_is_appended_later_comes_behind(table: StoredTable) -> None:
    table.append([("a", 1, "x"), ("b", 2, "y")])
    table.overwrite([("a", 3, "z"), ("a", 4, "z")], partition_filter=col("dt") == "a")
    table.append([("a", 5, "w")])
    assert in_order(table) == [3, 4, 5, 2]


def test_expiry_keeps_what_the_newest_snapshot_needs_and_old_ones_are_read_until_then(table: StoredTable) -> None:
    first = table.append([("a", 1, "x")])
    table.append([("a", 2, "y")])
    table.compact()
    assert table.rows(first) == [("a", 1, "x")]
    table.store.expire.expire(retain_max=1)
    assert table.rows() == [("a", 1, "x"), ("a", 2, "y")]
    assert len(table.names_on_storage("dt=a/bucket-0")) == 1
