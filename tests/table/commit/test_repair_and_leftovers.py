"""After a commit, an abort, a repair: no extra file, no open transaction, no repeated or late change."""

from __future__ import annotations

import pytest

from storage_lib import DynamicTable, LeaseLostError, MemoryCatalog, StreamPosition
from storage_lib.io.table_directory.lease_paths import LeasePaths
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.table.protocol.lease import TableLeases
from tests.support.breaking_log import BreakingLog
from tests.support.fake_environment import FakeClock, fake_environment
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.orders_table import content, orders, reopened, rows, streamed
from tests.support.waiting import wait_until


def _breaking(table: DynamicTable) -> tuple[DynamicTable, BreakingLog]:
    assert table.log is not None
    log = BreakingLog(table.log)
    return reopened(table, log), log


def _data_files(table: DynamicTable) -> int:
    return len(table.environment.file_io.list_directory(f"{table.location}/dt=a/bucket-0"))


def test_a_lost_transaction_is_in_the_log_again_as_soon_as_the_commit_returns() -> None:
    table, log = _breaking(orders())
    log.loses_next_commits = 1

    table.append(rows("+I a 1 10"))

    assert streamed(table) == ["+I a 1 10"]


def test_records_that_retention_has_deleted_are_not_published_again() -> None:
    clock = FakeClock()
    catalog = MemoryCatalog(environment=fake_environment(clock=clock))
    table = orders(catalog, **{"log.retention": "1 h"})
    table.append(rows("+I a 1 10"))
    write_context = table.new_write().begin(commit_user="job")  # its transaction fences that of the append
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 9 90"))
    table.new_write().abort(write_context, [task.prepare_commit()])

    clock.pass_time(2 * 3600)
    reopened(table).append(rows("+I a 2 20"))

    assert table.log is not None
    held = table.log.read(table.log.earliest_offsets())
    assert [id_ for batch in held for id_ in batch.rows.column("id").to_pylist()] == [2]


def test_a_reader_who_has_a_row_from_the_snapshot_is_not_told_of_it_again_by_the_repair() -> None:
    table, log = _breaking(orders())
    log.loses_next_commits = 1
    table.append(rows("+I a 1 10"))

    assert streamed(table, StreamPosition(snapshot_id=1, split_index=0)) == ["+I a 1 10"]


def test_an_untracked_append_does_not_leak_into_the_repair_of_a_repair() -> None:
    table, log = _breaking(orders())
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.append(rows("+I a 1 10"))
    log.dies_before_commit = False
    table.overwrite(rows("+I b 5 50"), change_tracking=False)
    log.loses_next_commits = 2

    table.append(rows("+I a 2 20"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]


def test_the_replay_of_a_tracked_drop_that_died_finishes_its_log_part() -> None:
    table, log = _breaking(orders())
    table.append(rows("+I a 1 10"))
    write_context = table.new_write().begin(commit_user="dag")
    task = table.new_write().open_task(write_context)
    task.write(rows("-D a 1 10"))
    message = task.prepare_commit()
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.new_write().commit(write_context, [message], 7)

    reopened(table, log.delegate).maintenance.drop_partitions(
        [{"dt": "a"}], change_tracking=True, commit_user="dag", commit_identifier=7
    )

    assert streamed(reopened(table, log.delegate)) == ["+I a 1 10", "-D a 1 10"]


def test_an_aborted_write_does_not_hold_readers_up() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 1 10"))
    message = task.prepare_commit()

    table.new_write().abort(write_context, [message])

    assert table.log is not None
    assert table.log.latest_offsets().of(0) > message.transactions[0].written.next_offset
    assert _data_files(table) == 0


@pytest.mark.parametrize("heirs_user", ["heir", "crashed"])
def test_who_takes_over_from_the_dead_ends_what_it_left_open_in_every_bucket(heirs_user: str) -> None:
    table = orders(None, **{"bucket": "2", "lease.timeout": "5 s"})
    crashed = table.new_write().open_task(table.new_write().begin(commit_user="crashed"))
    crashed.write(rows(*(f"+I a {n} 0" for n in range(20))))
    written = {each.written.bucket: each.written.next_offset for each in crashed.prepare_commit().transactions}
    assert len(written) == 2

    heir = reopened(table)
    heir.new_write().abort(heir.new_write().begin(commit_user=heirs_user), [])

    assert table.log is not None
    latest = table.log.latest_offsets()
    assert all(latest.of(bucket) > offset for bucket, offset in written.items())


def test_a_commit_that_lost_its_lease_leaves_no_file_and_no_transaction() -> None:
    table = orders(None, **{"lease.timeout": "5 s"})
    write_context = table.new_write().begin(commit_user="sleeper")
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 1 10"))
    message = task.prepare_commit()
    table.context.leases.acquire(holder="heir", commit_user="heir", purpose="write")

    with pytest.raises(LeaseLostError):
        table.new_write().commit(write_context, [message], 1)

    assert _data_files(table) == 0
    assert table.log is not None
    assert table.log.latest_offsets().of(0) > message.transactions[0].written.next_offset


def test_a_tracked_overwrite_leaves_only_the_files_of_the_difference() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I a 2 -"))

    table.overwrite(rows("+I a 1 11", "+I a 2 -"))
    table.overwrite(rows("+I a 1 11", "+I a 2 -"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 -", "+U a 1 11"]
    assert content(table) == {"a 1 11", "a 2 -"}
    assert _data_files(table) == 2


def test_a_holder_beats_while_it_works() -> None:
    environment, paths = fake_environment(), TablePaths("table")
    leases = TableLeases(environment, paths, timeout_ms=30, wait_timeout_ms=1000, table="shop.orders")
    lease = leases.acquire(holder="a", commit_user="a", purpose="write")

    with leases.beating(lease):
        wait_until(lambda: environment.file_io.exists(LeasePaths(paths.lease_directory).beat(lease.number)))
