"""A log that is deleted and recreated: its offsets start at 0 again, and former offsets are invalid in it."""

from __future__ import annotations

import pytest

from storage_lib import DynamicTable, LogOffsetsExpiredError
from storage_lib.table.protocol.stream_position import StreamPosition
from tests.support.orders_table import applied, content, orders, reopened, rows, streamed


def make_log_anew(table: DynamicTable) -> DynamicTable:
    assert table.log is not None
    table.log.drop()
    table.log.create()
    return reopened(table)


def full_stream(table: DynamicTable) -> list[str]:
    return streamed(table, table.stream(startup="full").initial_position())


@pytest.mark.parametrize("commits_after", [1, 3, 9])
def test_who_starts_again_reads_everything(commits_after: int) -> None:
    table = orders(bucket="2")
    for price in range(4):
        table.append(rows(f"+U a 1 {price}", f"+U a 2 {price}"))
    table = make_log_anew(table)
    assert applied(full_stream(table)) == content(table)

    for price in range(commits_after):
        table.append(rows(f"+U a 1 {100 + price}"))
        assert applied(full_stream(table)) == content(table)
        waiting = table.stream(startup="full")
        waiting.poll()
        table.append(rows(f"+U b {price} 1"))
        assert (told := waiting.poll()) is not None
        assert told.column("id").to_pylist() == [price]


@pytest.mark.parametrize("commits_after", [1, 9])
def test_a_position_of_before_is_refused_however_long_the_new_log_has_become(commits_after: int) -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    source = table.stream(startup="full")
    source.poll()
    kept = StreamPosition.from_json(source.position.to_json()) if source.position else None
    table = make_log_anew(table)
    for price in range(commits_after):
        table.append(rows(f"+U a 1 {price}"))

    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        table.stream(position=kept).poll()
    with pytest.raises(LogOffsetsExpiredError, match="recreated"):
        source.poll()


def test_a_stream_that_began_before_changes_the_log_has_lost_starts_again() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    source = table.stream(startup="full")
    began = source.initial_position()
    table.append(rows("+I a 2 20"))
    table = make_log_anew(table)

    with pytest.raises(LogOffsetsExpiredError, match=r"snapshot 2.*log\.scan=full"):
        table.stream(position=began).poll()


def test_a_stream_with_the_rows_before_looks_them_up_in_what_was_there_before_the_log() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    table.append(rows("+U a 1 11"))
    table = make_log_anew(table)
    source = table.stream(startup="full", normalize="lookup")
    source.poll()

    table.append(rows("+U a 1 12"))

    assert (told := source.poll()) is not None
    assert list(zip(told["_row_kind"].to_pylist(), told["price"].to_pylist(), strict=True)) == [("-U", 11), ("+U", 12)]


@pytest.mark.parametrize("written", [1, 4, 9])
def test_tiering_says_once_that_records_may_be_gone_and_goes_on_with_the_new_log(written: int) -> None:
    table = orders(None, **{"log.consistency": "eventual"})
    for price in range(4):
        table.append(rows(f"+U a 1 {price}"))
    table = make_log_anew(table)
    order = table.new_write().begin(commit_user="stream")
    for price in range(written):
        with table.new_write().open_task(order) as write:
            write.write(rows(f"+U a {price} {100 + price}"))
            table.new_write().commit(order, [write.prepare_commit()], price, defers_tiering=True)

    assert table.describe()["log records not yet in files"] == str(written)
    with pytest.raises(LogOffsetsExpiredError, match=r"recreated.*skip_expired"):
        table.maintenance.tier_log()
    table.maintenance.tier_log(skip_expired=True)

    assert content(table) == {f"a {price} {100 + price}" for price in range(written)} | (
        {"a 1 3"} if written == 1 else set()
    )
    table.append(rows("+U b 1 1"))
    assert applied(full_stream(table)) == content(table)
