"""Rows computed from a snapshot (read, change, write) are refused after an intermediate commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from storage_lib import CommitConflictError, InvalidInputError, MemoryCatalog, open_catalog
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.protocol.write_context import OverwriteScope, WriteContext
from tests.support.fake_environment import fake_environment

COLUMNS = "id INT, n BIGINT"
KINDS: dict[str, tuple[dict[str, str], list[str]]] = {
    "a key and a log": ({"log.system": "kafka"}, ["id"]),
    "an eventual log": ({"log.system": "kafka", "log.consistency": "eventual"}, ["id"]),
    "a key": ({"log.system": "none"}, ["id"]),
    "whole rows, counted": ({"log.system": "none"}, []),
    "whole rows and a log": ({"log.system": "kafka"}, []),
    "append-only": ({"log.system": "none", "write-mode": "append-only"}, []),
}


def counter(kind: str) -> DynamicTable:
    options, key = KINDS[kind]
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table("shop.counter", COLUMNS, primary_key=key, options=options)
    table.append(pa.table({"id": pa.array([1], pa.int32()), "n": [0]}))
    return table


def newest(table: DynamicTable) -> int:
    return table.context.file_store.snapshots.latest_id() or 0


def one(n: int) -> pa.Table:
    return pa.table({"id": pa.array([1], pa.int32()), "n": [n]})


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_the_newest_snapshot_is_committed(kind: str) -> None:
    table = counter(kind)

    table.append(one(5), based_on=newest(table))

    assert 5 in table.to_arrow().column("n").to_pylist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_an_older_snapshot_is_refused_and_leaves_nothing(kind: str) -> None:
    table = counter(kind)
    read = newest(table)
    table.append(one(3))
    before = table.to_arrow()

    with pytest.raises(CommitConflictError, match=f"after snapshot {read}, from which the rows of this"):
        table.append(one(1), based_on=read)

    assert table.to_arrow() == before
    assert table.inspect.lease_holder() is None
    table.append(one(4), based_on=newest(table))


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_of_a_snapshot_before_an_overwrite_is_refused(kind: str) -> None:
    table = counter(kind)
    read = newest(table)
    table.overwrite(one(7), partition={})

    with pytest.raises(CommitConflictError, match=f"after snapshot {read}, from which the rows of this"):
        table.append(one(1), based_on=read)

    assert table.to_arrow().column("n").to_pylist() == [7]


def test_a_compaction_changes_no_row() -> None:
    table = counter("a key")
    table.append(one(1))
    read = newest(table)
    table.compact(full=True)
    assert newest(table) > read

    table.append(one(2), based_on=read)

    assert table.to_arrow().column("n").to_pylist() == [2]


def test_a_snapshot_that_has_been_expired_counts_as_a_change() -> None:
    table = counter("a key")
    read = newest(table)
    for n in range(4):
        table.append(one(n))
    table.maintenance.expire_snapshots(retain_last=1)

    with pytest.raises(CommitConflictError):
        table.append(one(1), based_on=read)


@pytest.mark.parametrize("kind", ["a key", "whole rows, counted"])
def test_nothing_is_lost_when_two_count_at_once(kind: str, tmp_path: Path) -> None:
    options, key = KINDS[kind]
    catalog = open_catalog(tmp_path)
    catalog.create_table("shop.counter", COLUMNS, primary_key=key, options=options)
    catalog.load_table("shop.counter").append(one(0))

    def count_up() -> None:
        table = catalog.load_table("shop.counter")
        done = 0
        while done < 10:
            read = newest(table)
            (n,) = table.to_arrow(snapshot_id=read).column("n").to_pylist()
            changed = pa.concat_tables([one(n), one(n + 1)]).append_column("_row_kind", pa.array(["-U", "+U"]))
            try:
                table.append(changed, based_on=read)
            except CommitConflictError:
                continue
            done += 1

    with ThreadPoolExecutor(2) as threads:
        for each in [threads.submit(count_up) for _ in range(2)]:
            each.result()

    assert catalog.load_table("shop.counter").to_arrow().column("n").to_pylist() == [20]


def test_an_order_travels_as_text() -> None:
    table = counter("a key and a log")
    write_context = table.new_write().begin(commit_user="job", based_on=newest(table))

    again = WriteContext.from_json(write_context.to_json())
    table.new_write().abort(again, [])

    assert again == write_context
    assert table.inspect.lease_holder() is None


@pytest.mark.parametrize("text", ["", "{}", "[]", "7", '{"lease": {}}', '{"lease": null, "more": 1}'])
def test_what_is_no_order_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a write context"):
        WriteContext.from_json(text)


def test_the_order_of_an_overwrite_stays_where_it_is() -> None:
    write_context = counter("a key").new_write().begin(commit_user="job", overwrite=OverwriteScope.of({}))

    with pytest.raises(InvalidInputError, match="overwrite"):
        write_context.to_json()


def test_rows_are_not_hidden_by_rows_that_were_restored_while_they_were_written() -> None:
    """An overwrite numbers its rows 0, so that rows written after it have smaller numbers than those before it."""
    table = counter("a key")
    for n in range(1, 4):
        table.append(one(n))
    table.overwrite(one(5), change_tracking=False)
    builder = table.new_write()
    begun = builder.begin(commit_user="writer")
    with builder.open_task(begun) as write:
        write.write(one(6).to_batches()[0])
        written = write.prepare_commit()

    table.rollback_to(snapshot_id=3, change_tracking=False)

    with pytest.raises(CommitConflictError, match=r"snapshot 6 restored rows.*run it again"):
        builder.commit(begun, [written], 1)
    table.append(one(6))
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 6}]


@pytest.mark.parametrize("kind", ["a key and a log", "a key", "whole rows, counted", "append-only"])
def test_rows_that_an_overwrite_without_a_lease_has_replaced_are_not_changed(kind: str) -> None:
    table = counter(kind)
    builder = table.new_write()
    begun = builder.begin(commit_user="writer", based_on=newest(table))
    with builder.open_task(begun) as write:
        write.write(one(1).to_batches()[0])
        written = write.prepare_commit()

    table.overwrite(one(7), partition={}, change_tracking=False)

    with pytest.raises(CommitConflictError, match="replaced rows"):
        builder.commit(begun, [written], 1)
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 7}]


def test_rows_are_changed_while_an_overwrite_replaces_another_partition() -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    columns, options = "id INT, day INT, n BIGINT", {"log.system": "none"}
    table = catalog.create_table("shop.c", columns, primary_key=["id", "day"], partition_by=["day"], options=options)

    def of_day(day: int, n: int) -> pa.Table:
        return pa.table({"id": pa.array([1], pa.int32()), "day": pa.array([day], pa.int32()), "n": [n]})

    table.append(pa.concat_tables([of_day(1, 0), of_day(2, 0)]))
    builder = table.new_write()
    begun = builder.begin(commit_user="writer", based_on=newest(table))
    with builder.open_task(begun) as write:
        write.write(of_day(1, 1).to_batches()[0])
        written = write.prepare_commit()

    table.overwrite(of_day(2, 9), change_tracking=False)
    builder.commit(begun, [written], 1)

    assert {row["day"]: row["n"] for row in table.to_arrow().to_pylist()} == {1: 1, 2: 9}
