"""Each record of a source is in the table or among its rejected records, whatever happens to the table."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, DynamicTable, InvalidInputError, MemoryCatalog, SourceRange
from storage_lib.errors import StorageError
from storage_lib.file_store.rejected.rejected_merge import MERGED_AT_ONCE
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.schema.evolution.schema_changes import SetOption
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.orders_table import COLUMNS, orders, reopened
from tests.support.rejecting_source import (
    SOURCE,
    check_each_record_once,
    files_of_rejected,
    read_on,
    reingest_some,
    rejected_of,
    rows_of,
)

DAY = 24 * 3600


def without_log() -> DynamicTable:
    return orders(None, **{"log.system": "none"})


def pass_time(table: DynamicTable, seconds: float) -> None:
    clock = table.environment.clock
    assert isinstance(clock, FakeClock)
    clock.pass_time(seconds)


def test_a_commit_with_only_rejected_records_is_a_commit() -> None:
    table = without_log()

    snapshot = table.append(
        rows_of([]),
        source=SourceRange(source=SOURCE, start=None, end=LogOffsets({0: 3})),
        rejected=rejected_of([0, 1, 2]),
    )

    assert snapshot is not None
    assert table.count() == 0
    assert table.inspect.rejected()["offset"].to_pylist() == [0, 1, 2]
    assert table.inspect.rejected()["value"].to_pylist() == [b"record 0", b"record 1", b"record 2"]
    assert table.describe()["rejected records"].startswith("3 (")


def test_a_repeated_commit_stores_its_rejected_records_once() -> None:
    table = without_log()
    first = read_on(table, 9, identifier=1)

    start = SourceRange(source=SOURCE, start=None, end=LogOffsets({0: 9}))
    again = table.append(
        rows_of([]), source=start, rejected=rejected_of([0, 3]), commit_user="reader", commit_identifier=1
    )

    assert again == first
    check_each_record_once(table)


def test_a_record_leaves_the_rejected_ones_with_the_commit_of_its_row_and_only_once() -> None:
    table = without_log()
    read_on(table, 30)
    _, refused = check_each_record_once(table)
    ids = table.inspect.rejected()["id"].to_pylist()

    reingest_some(table, refused[:3])

    accepted, left = check_each_record_once(table)
    assert set(refused[:3]) <= set(accepted)
    assert left == refused[3:]
    with pytest.raises(CommitConflictError, match="is not stored any longer"):
        table.append(rows_of(refused[:1]), resolved=ids[:1])
    check_each_record_once(table)


def test_rejected_records_of_other_columns_are_refused_before_anything_is_written() -> None:
    table = without_log()

    with pytest.raises(InvalidInputError, match="give those of REJECTED_SCHEMA"):
        table.append(rows_of([1]), rejected=rejected_of([2]).drop_columns("reason"))
    with pytest.raises(InvalidInputError, match="do not have the types"):
        table.append(rows_of([1]), rejected=rejected_of([2]).set_column(3, "partition", pa.array(["x"])))

    assert table.inspect.latest_snapshot() is None
    assert files_of_rejected(table) == set()


def test_a_record_older_than_the_retention_goes_with_any_commit_and_its_file_with_the_snapshots() -> None:
    table = orders(None, **{"log.system": "none", "rejected.retention": "2 d"})
    read_on(table, 9)
    pass_time(table, 1.5 * DAY)
    read_on(table, 9)
    both = table.inspect.rejected()["offset"].to_pylist()
    pass_time(table, 1 * DAY)

    table.append(rows_of([1000]))

    young = [each for each in both if each >= 9]
    assert table.inspect.rejected()["offset"].to_pylist() == young
    assert len(files_of_rejected(table)) == 2 + 3, "two files, and a list of each commit with a change"
    table.maintenance.expire_snapshots(retain_last=1)
    assert len(files_of_rejected(table)) == 1 + 1
    assert table.inspect.rejected()["offset"].to_pylist() == young
    pass_time(table, 2 * DAY)
    table.append(rows_of([1001]))
    table.maintenance.expire_snapshots(retain_last=1)
    assert files_of_rejected(table) == set()
    assert table.inspect.rejected_count() == 0


def test_a_rollback_restores_the_rejected_records_that_belong_to_its_offsets() -> None:
    table = without_log()
    read_on(table, 12)
    table.tags.create("early")
    read_on(table, 12)
    table.maintenance.expire_snapshots(retain_last=1)

    table.rollback_to(tag="early")

    accepted, refused = check_each_record_once(table)
    assert len(accepted) + len(refused) == 12
    read_on(table, 20)
    check_each_record_once(table)


def test_a_rollback_over_a_commit_of_only_rejected_records_is_a_commit() -> None:
    table = without_log()
    first = table.append(rows_of([]), rejected=rejected_of([0]))
    table.append(rows_of([]), rejected=rejected_of([3]))
    assert first is not None

    restored = table.rollback_to(snapshot_id=first.id)

    assert restored is not None
    assert table.inspect.rejected()["offset"].to_pylist() == [0]


def test_a_branch_has_rejected_records_of_its_own_and_brings_them() -> None:
    table = without_log()
    read_on(table, 12)
    table.branches.create("dev")
    branch = table.branches.open("dev")
    read_on(branch, 20)
    here = check_each_record_once(table)
    there = check_each_record_once(branch)
    assert here != there

    table.branches.fast_forward("dev")
    table.branches.delete("dev")
    table.maintenance.expire_snapshots(retain_last=1)

    assert check_each_record_once(table) == there


def test_a_rewrite_into_other_buckets_keeps_the_rejected_records() -> None:
    table = MemoryCatalog(environment=fake_environment()).create_table(
        "shop.orders", COLUMNS, primary_key=["dt", "id"], options={"bucket": "1", "log.system": "none"}
    )
    read_on(table, 12)
    before = check_each_record_once(table)

    rewritten = table.rewrite(options={"bucket": "2"})

    assert check_each_record_once(rewritten) == before


def test_the_list_stays_short_and_each_file_is_needed() -> None:
    table = without_log()
    for _ in range(100):
        table.append(rows_of([]), rejected=rejected_of([0]))
    table.maintenance.expire_snapshots(retain_last=1)

    assert table.inspect.rejected_count() == 100
    assert len(files_of_rejected(table)) <= MERGED_AT_ONCE + 1
    assert table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths == ()


def test_damaged_rejected_records_fail_their_reads_but_no_commit() -> None:
    table = orders(None, **{"log.system": "none", "rejected.retention": "1 d"})
    read_on(table, 12)
    files = table.environment.file_io
    for name in files_of_rejected(table):
        path = f"{table.location}/rejected/{name}"
        files.delete(path)
        files.write_bytes(path, b"damaged")
    pass_time(table, 2 * DAY)
    reader = reopened(table)

    with pytest.raises(StorageError, match="rejected"):
        reader.inspect.rejected()
    assert reader.append(rows_of([1000])) is not None


def test_the_cleaner_deletes_what_a_crashed_commit_left_and_nothing_else() -> None:
    table = without_log()
    read_on(table, 12)
    files = table.environment.file_io
    needed = files_of_rejected(table)
    for name in ("rejected-lost.parquet", "rejected-list-lost", ".rejected-list-x.1.tmp"):
        files.write_bytes(f"{table.location}/rejected/{name}", b"x")
    files.write_bytes(f"{table.location}/rejected/notes.txt", b"x")

    removed = table.maintenance.remove_orphan_files(older_than=timedelta(0)).paths

    assert {each.rpartition("/")[2] for each in removed} == {
        "rejected-lost.parquet",
        "rejected-list-lost",
        ".rejected-list-x.1.tmp",
    }
    assert files_of_rejected(table) == {*needed, "notes.txt"}


def test_the_retention_can_be_altered() -> None:
    table = without_log()
    read_on(table, 12)
    pass_time(table, 3 * DAY)

    altered = table.alter(SetOption("rejected.retention", "1 d"))
    altered.append(rows_of([1000]))

    assert altered.inspect.rejected_count() == 0
