"""Snapshots expire during writes: no row is lost, and readers that must start over get an error."""

from __future__ import annotations

import pytest

from storage_lib import (
    CommitConflictError,
    DynamicTable,
    InvalidInputError,
    LeaseLostError,
    StreamPosition,
    UnavailableError,
)
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER, Committable
from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.log_store.log_store import EndOutcome, LogStore, TransactionHandle
from storage_lib.schema.placing.layout import layout_of
from storage_lib.table.commit.table_overwrite import scope_of
from storage_lib.table.protocol.source_offsets import SourceRange
from tests.support.breaking_log import BreakingLog
from tests.support.faulty_file_io import SimulatedCrash
from tests.support.orders_table import applied, content, orders, reopened, rows, streamed


def _died_before_its_log_part(table: DynamicTable) -> LogStore:
    assert table.log is not None
    log = BreakingLog(table.log)
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        reopened(table, log).append(rows("+I a 1 10"))
    return log.delegate


def test_a_snapshot_whose_changes_never_reached_the_log_does_not_expire() -> None:
    table = orders()
    log = _died_before_its_log_part(table)
    handle = log.begin(0).handle  # as a successor or a time-out does: the transaction is aborted
    log.end(handle, commit=False)
    table.overwrite(rows("+I b 1 1"), change_tracking=False)
    table.overwrite(rows("+I b 2 2"), change_tracking=False)

    table.maintenance.expire_snapshots(retain_last=1)
    reopened(table).append(rows("+I a 2 20"))
    table.maintenance.expire_snapshots(retain_last=1)

    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]
    assert table.inspect.snapshots().num_rows == 1


def test_a_snapshot_whose_changes_every_repair_has_lost_does_not_expire() -> None:
    table = orders()
    assert table.log is not None
    log = BreakingLog(table.log)
    log.loses_next_commits = 100  # more than the attempts to repair it
    reopened(table, log).append(rows("+I a 1 10"))
    assert table.inspect.snapshots().num_rows > 2
    assert streamed(table) == []
    table.overwrite(rows("+I b 1 1"), change_tracking=False)

    table.maintenance.expire_snapshots(retain_last=1)
    reopened(table).append(rows("+I a 2 20"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]


def test_what_the_log_lacks_stays_although_others_commit_while_that_is_found_out() -> None:
    table = orders()
    log = _died_before_its_log_part(table)

    class Slow(BreakingLog):
        """Responds so slowly that another commit completes, and the transaction is aborted."""

        def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
            log.end_all(handles, commit=False)
            table.overwrite(rows("+I b 1 1"), change_tracking=False)
            raise UnavailableError

    reopened(table, Slow(log)).maintenance.expire_snapshots(retain_last=1)
    reopened(table).append(rows("+I a 2 20"))

    assert content(table) == {"a 1 10", "a 2 20", "b 1 1"}
    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]


def test_expiry_finishes_what_a_dead_writer_left_open() -> None:
    table = orders()
    _died_before_its_log_part(table)
    table.overwrite(rows("+I b 1 1"), change_tracking=False)

    table.maintenance.expire_snapshots(retain_last=1)

    assert table.inspect.snapshots().num_rows == 1
    assert streamed(table) == ["+I a 1 10"]


@pytest.mark.parametrize("bucket", ["1", "3"])
def test_expiry_by_a_process_from_before_a_rewrite_keeps_what_the_new_log_lacks(bucket: str) -> None:
    opened = orders(None, bucket="2")
    for number in range(4):
        opened.append(rows(*(f"+U a {id_} {number}" for id_ in range(8))))
    table = opened.rewrite(options={"bucket": bucket})
    assert table.log is not None
    log = BreakingLog(table.log)
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        reopened(table, log).append(rows(*(f"+U a {id_} 10" for id_ in range(8))))
    table.overwrite(rows("+I b 1 1"), change_tracking=False)

    opened.maintenance.expire_snapshots(retain_last=1)
    reopened(table).append(rows("+I a 20 20"))

    beginning = StreamPosition(snapshot_id=0, offsets=LogOffsets(), layout=layout_of(table.schema))
    assert applied(streamed(table, beginning)) == {*(f"a {id_} 10" for id_ in range(8)), "a 20 20"}


def test_the_append_of_a_writer_that_knows_no_log_does_not_expire_before_it_is_published() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    task = table.new_write().open_task(table.new_write().begin(commit_user="x", tracked=False))
    task.write(rows("+I a 2 20"))
    foreign = Committable(
        commit_user="flink", commit_identifier=BATCH_COMMIT_IDENTIFIER, messages=task.prepare_commit().files
    )
    table.context.file_store.commit.commit(foreign)
    table.overwrite(rows("+I b 1 1"), change_tracking=False)
    table.overwrite(rows("+I b 2 2"), change_tracking=False)

    table.maintenance.expire_snapshots(retain_last=1)
    table.append(rows("+I a 3 30"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 20", "+I a 3 30"]


def _compacted_by_a_stranger(table: DynamicTable) -> None:
    """Compact as an engine does that does not know the log and copies no properties."""
    store = table.context.file_store
    tasks = store.compact.plan(store.snapshots.latest(), full=True)
    messages = tuple(each for each in map(store.compact.run, tasks) if each is not None)
    assert messages
    store.commit.commit(Committable(commit_user="flink", commit_identifier=BATCH_COMMIT_IDENTIFIER, messages=messages))


def test_the_offsets_of_the_log_do_not_expire_although_others_have_committed_since() -> None:
    table = orders(None, **{"write-only": "true"})
    table.append(rows("+I a 1 10"))
    table.append(rows("+U a 1 11"))
    _compacted_by_a_stranger(table)
    newest = table.inspect.latest_snapshot_id() or 0

    table.maintenance.expire_snapshots(retain_last=1)
    table.append(rows("+I a 2 20"))

    assert streamed(table, StreamPosition(snapshot_id=newest, split_index=0)) == ["+I a 1 11", "+I a 2 20"]


def test_the_offsets_of_a_source_do_not_expire_although_others_have_committed_since() -> None:
    table = orders(None, **{"write-only": "true", "log.system": "none"})
    ends = [LogOffsets({0: 5}), LogOffsets({0: 9})]
    table.append(rows("+I a 1 10"), source=SourceRange(source="topic", start=None, end=ends[0]))
    table.append(rows("+I a 1 11"), source=SourceRange(source="topic", start=ends[0], end=ends[1]))
    _compacted_by_a_stranger(table)

    table.maintenance.expire_snapshots(retain_last=1)

    assert reopened(table).inspect.source_offsets("topic") == ends[1]


def test_a_commit_that_cannot_see_any_more_whose_leases_came_between_starts_over() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    order = table.new_write().begin(commit_user="slow")
    task = table.new_write().open_task(order)
    task.write(rows("+I a 2 20"))
    for _ in range(3):
        table.overwrite(rows("+I b 1 1"), change_tracking=False)
    table.maintenance.expire_snapshots(retain_last=1)

    other = reopened(table)
    with pytest.raises(LeaseLostError, match="expired"):
        other.new_write().commit(order, [task.prepare_commit()], 1)

    assert content(table) == {"a 1 10", "b 1 1"}
    assert streamed(table) == ["+I a 1 10"]


def test_a_task_may_start_after_the_snapshot_of_its_order_has_expired() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    order = table.new_write().begin(commit_user="slow")
    table.overwrite(rows("+I b 1 1"), change_tracking=False)
    table.maintenance.expire_snapshots(retain_last=1)

    other = reopened(table)
    task = other.new_write().open_task(order)
    task.write(rows("+U a 1 11"))
    other.new_write().commit(order, [task.prepare_commit()], 1)

    assert content(table) == {"a 1 11", "b 1 1"}
    assert applied(streamed(table)) == {"a 1 11"}


def test_an_overwrite_that_began_upon_an_expired_snapshot_conflicts_and_leaves_no_file() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    order = table.new_write().begin(commit_user="backfill", tracked=False, overwrite=scope_of(None))
    task = table.new_write().open_task(order)
    task.write(rows("+I a 9 90"))
    message = task.prepare_commit()
    table.append(rows("+I a 2 20"))
    table.maintenance.expire_snapshots(retain_last=1)
    directory = f"{table.location}/dt=a/bucket-0"
    files_before = len(table.environment.file_io.list_directory(directory))

    with pytest.raises(CommitConflictError, match="run it again"):
        reopened(table).new_write().commit(order, [message], 1)

    assert content(table) == {"a 1 10", "a 2 20"}
    assert len(table.environment.file_io.list_directory(directory)) == files_before - 1


@pytest.mark.parametrize("retain_last", [0, -1])
def test_the_newest_snapshot_can_not_be_expired(retain_last: int) -> None:
    table = orders()
    table.append(rows("+I a 1 10"))

    with pytest.raises(InvalidInputError, match="1 or more"):
        table.maintenance.expire_snapshots(retain_last=retain_last)
