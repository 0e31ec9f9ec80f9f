"""Writing and reading through the verbs: sequence numbers, memory, overwrites, changes, and refused operations."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import datetime

import pytest

from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.schema.types.row_kind import RowKind
from tests.support.fake_environment import fake_environment
from tests.support.schemas import schema_of
from tests.support.stored_table import StoredTable, committable_of, orders_schema


def test_the_first_row_of_a_bucket_is_newer_than_any_overwrite(table: StoredTable) -> None:
    """Overwritten rows have sequence number 0; with a tie either of the two rows could win."""
    (first,) = table.messages([("a", 1, "x")])
    assert first.increment.new_files[0].min_sequence_number == 1


def test_sequence_numbers_go_on_above_the_highest_of_the_bucket(table: StoredTable) -> None:
    table.append([("a", 1, "x"), ("a", 1, "y"), ("a", 1, "z")])
    (second,) = table.messages([("a", 1, "w")])
    (file,) = second.increment.new_files
    assert file.min_sequence_number == 4
    table.compact()
    (third,) = table.messages([("a", 1, "w")])
    assert third.increment.new_files[0].min_sequence_number == 4


def test_writers_of_one_commit_may_number_in_blocks_of_their_own(table: StoredTable) -> None:
    table.append([("a", 1, "x")])
    base = table.store.snapshots.latest()
    messages: list[CommitMessage] = []
    for block, item in ((1, "later block"), (0, "earlier block")):
        write = table.store.new_write(base, sequence_block=block)
        table.fill(write, [("a", 1, item)])
        messages += write.prepare_commit()
    table.commit(messages)
    assert table.rows() == [("a", 1, "later block")]


def test_many_buckets_share_one_budget_of_memory() -> None:
    table = StoredTable(orders_schema({"bucket": "4", "write-buffer-size": "64 kb"}), fake_environment())
    write = table.store.new_write(None)
    for part in range(10):
        table.fill(write, [(f"day {n % 8}", 1000 * part + n, "x" * 50) for n in range(400)])
        assert sum(writer.memtable_bytes for writer in write._writers.values()) <= 64 * 1024
    table.commit(write.prepare_commit())
    assert len(table.rows()) == 4000
    assert len(table.files()) > 32


@pytest.mark.parametrize("options", [{}, {"file.format": "orc", "file.format.per.level": "5:parquet"}])
def test_a_column_that_one_of_the_formats_cannot_hold_is_refused_before_anything_is_written(
    options: dict[str, str],
) -> None:
    schema = schema_of("id BIGINT, seen TIMESTAMP(9)", key="id")
    table = StoredTable(replace(schema, options={**schema.options, **options}), fake_environment())
    for write in (table.store.new_write(None), table.store.new_write(None)):
        with pytest.raises(InvalidInputError, match="'seen'"):
            table.fill(write, [(1, datetime(2024, 5, 14))])  # noqa: DTZ001  a TIMESTAMP has no zone
    assert table.files() == []


def test_an_overwrite_larger_than_memory_is_one_sorted_run() -> None:
    table = StoredTable(orders_schema({"write-buffer-size": "32 kb"}), fake_environment())
    table.append([("a", 5, "old")])
    table.overwrite([("a", n % 700, f"item {n}") for n in range(1400)])
    assert {file.split("/")[1] for file in table.files()} == {"5"}
    assert table.rows() == sorted((("a", n, f"item {n + 700}") for n in range(700)), key=repr)


def test_rows_of_an_overwrite_have_sequence_number_zero(table: StoredTable) -> None:
    (message,) = table.messages([("a", 1, "x"), ("a", 1, "y")], overwrite=True)
    (file,) = message.increment.new_files
    assert (file.min_sequence_number, file.max_sequence_number, file.row_count, file.level) == (0, 0, 1, 5)


def test_nothing_written_is_nothing_to_commit(table: StoredTable) -> None:
    write = table.store.new_write(None)
    assert write.prepare_commit() == ()


def test_an_aborted_write_leaves_no_file(table: StoredTable) -> None:
    write = table.store.new_write(None)
    table.fill(write, [("a", 1, "x")])
    write.prepare_commit()
    write.abort()
    assert table.names_on_storage("dt=a/bucket-0") + table.names_on_storage("dt=a/bucket-1") == []


def test_messages_and_splits_travel_between_processes(table: StoredTable) -> None:
    messages = pickle.loads(pickle.dumps(table.messages([("a", 1, "x")])))  # noqa: S301  our own
    table.store.commit.commit(pickle.loads(pickle.dumps(committable_of(messages))))  # noqa: S301
    (split,) = pickle.loads(pickle.dumps(table.store.scan.plan(table.store.snapshots.latest()).splits()))  # noqa: S301
    (batch,) = table.reopened().read.read(split)
    assert batch.to_pylist() == [{"dt": "a", "id": 1, "item": "x"}]
    table.append([("a", 1, "y")])
    (task,) = pickle.loads(pickle.dumps(table.store.compact.plan(table.store.snapshots.latest(), full=True)))  # noqa: S301
    message = table.reopened().compact.run(task)
    assert message is not None
    table.commit([message])
    assert table.rows() == [("a", 1, "y")]


def test_columns_come_in_the_order_asked(table: StoredTable) -> None:
    table.append([("a", 1, "x")])
    assert table.rows(columns=["item", "dt"]) == [("x", "a")]


def test_changes_are_read_as_they_were_written(table: StoredTable) -> None:
    table.append([("a", 1, "x"), ("a", 2, "y")])
    kinds = [RowKind.UPDATE_AFTER, RowKind.DELETE]
    snapshot = table.append([("a", 1, "x2"), ("a", 2, "y")], kinds)
    plan = table.store.scan.plan(snapshot)
    fresh = {entry.file.file_name for entry in table.store.scan.delta(snapshot)}
    changes = [
        (*row.values(), RowKind(kind))
        for split in plan.splits()
        for rows, codes in table.store.read.changes(split)
        for row, kind in zip(rows.to_pylist(), codes.to_pylist(), strict=True)
        if fresh & {file.file_name for file in split.files}
    ]
    assert ("a", 1, "x2", RowKind.UPDATE_AFTER) in changes
    assert ("a", 2, "y", RowKind.DELETE) in changes


def test_a_compaction_that_is_not_due_does_nothing(table: StoredTable) -> None:
    table.append([("a", 1, "x")])
    assert table.compaction_messages(full=False) == []
    assert table.compact(full=True) is not None
    assert table.compaction_messages(full=True) == []


def test_compactions_by_the_tables_strategy_keep_runs_few() -> None:
    table = StoredTable(orders_schema({"bucket": "1"}), fake_environment())
    for n in range(30):
        table.append([("a", n % 7, str(n))])
        table.compact(full=False)
    assert len(table.files()) <= 6
    assert [row[2] for row in table.rows()] == ["28", "29", "23", "24", "25", "26", "27"]


def test_a_leveled_table_is_compacted_once_level_0_has_its_number_of_files() -> None:
    options = {"bucket": "1", "compaction.strategy": "leveled", "compaction.level0-file-num-trigger": "3"}
    table = StoredTable(orders_schema(options), fake_environment())
    levels = []

    for number in range(7):
        table.append([("a", number % 2, str(number))])
        table.compact(full=False)
        levels.append([file.split("/")[1] for file in table.files()])

    assert levels == [["0"], ["0", "0"], ["5"], ["0", "5"], ["0", "0", "5"], ["5"], ["0", "5"]]
    assert table.rows() == [("a", 0, "6"), ("a", 1, "5")]


def test_a_reader_whose_snapshot_was_expired_is_told_so(table: StoredTable) -> None:
    first = table.append([("a", 1, "x")])
    splits = table.store.scan.plan(first).splits()
    table.append([("a", 1, "y")])
    table.compact()
    table.store.expire.expire(retain_max=1)
    with pytest.raises(SnapshotExpiredError, match=r"snapshot 1 expired while.*earliest kept is 3"):
        list(table.store.read.read(splits[0]))


def test_a_file_that_is_missing_for_no_reason_is_not_called_expired(table: StoredTable) -> None:
    table.append([("a", 1, "x")])
    (split,) = table.store.scan.plan(table.store.snapshots.latest()).splits()
    (name,) = table.names_on_storage(f"dt=a/bucket-{split.bucket}")
    table.environment.file_io.delete(f"{table.root}/dt=a/bucket-{split.bucket}/{name}")
    with pytest.raises(NotFoundError, match=name):
        list(table.store.read.read(split))


@pytest.mark.parametrize("key", ["pk-clustering-override", "row-tracking.enabled"])
def test_tables_whose_rows_would_come_out_wrong_are_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"db.t has option {key}=true"):
        StoredTable(orders_schema({key: "true"}), fake_environment())


def test_an_option_that_is_switched_off_is_no_obstacle() -> None:
    StoredTable(orders_schema({"row-tracking.enabled": "false"}), fake_environment())
