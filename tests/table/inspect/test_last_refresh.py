"""The last refresh of a materialized table is the commit that moved its positions last."""

from __future__ import annotations

from storage_lib import SourceRange
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.inspect.last_refresh import last_refresh
from tests.support.orders_table import orders, rows


def refreshed(table: DynamicTable, text: str, start: int, end: int) -> None:
    begin = None if start == 0 else LogOffsets({0: start})
    table.append(rows(text), source=SourceRange(source="a@main", start=begin, end=LogOffsets({0: end})))


def test_commits_that_carry_the_positions_forward_are_no_refreshes() -> None:
    table = orders()
    refreshed(table, "+I a 1 10", 0, 3)
    refreshed(table, "+I a 2 20", 3, 5)
    refreshes = table.inspect.latest_snapshot_id()
    table.compact(full=True)

    found = last_refresh(table.context.file_store.snapshots)

    assert refreshes == 2
    assert table.inspect.latest_snapshot_id() == 3
    assert found is not None
    assert found.id == 2


def test_after_a_rollback_it_is_the_first_snapshot_with_the_restored_positions() -> None:
    table = orders()
    refreshed(table, "+I a 1 10", 0, 3)
    refreshed(table, "+I a 2 20", 3, 5)
    table.rollback_to(snapshot_id=1)
    newest = table.inspect.latest_snapshot_id()

    found = last_refresh(table.context.file_store.snapshots)

    assert found is not None
    assert found.id == newest


def test_an_expired_refresh_is_replaced_by_the_oldest_snapshot_with_its_positions() -> None:
    table = orders()
    refreshed(table, "+I a 1 10", 0, 3)
    table.append(rows("+I a 9 90"))
    table.compact(full=True)
    table.maintenance.expire_snapshots(retain_last=1)

    snapshots = table.context.file_store.snapshots
    found = last_refresh(snapshots)

    assert snapshots.earliest_id() == 3
    assert found is not None
    assert found.id == 3


def test_a_table_that_was_never_refreshed_has_none() -> None:
    empty, written = orders(), orders()
    written.append(rows("+I a 1 10"))

    assert last_refresh(empty.context.file_store.snapshots) is None
    assert last_refresh(written.context.file_store.snapshots) is None
