"""One commit over two stores: after any crash, files and log hold the same changes, once, in the same order."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, InvalidInputError, LeaseLostError, StreamPosition
from storage_lib.file_store.commit_message import Committable
from storage_lib.log_store.log_store import EndOutcome, TransactionHandle
from storage_lib.schema.placing.bucketing import group_rows
from storage_lib.table.protocol.snapshot_log_properties import SnapshotLogProperties
from tests.support.breaking_log import BreakingLog
from tests.support.delegating_log import DelegatingLog
from tests.support.fake_environment import FakeClock
from tests.support.faulty_file_io import FaultyFileIO, SimulatedCrash
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import applied, content, orders, reopened, rows, streamed


def _breaking(table: DynamicTable) -> tuple[DynamicTable, BreakingLog]:
    assert table.log is not None
    log = BreakingLog(table.log)
    return reopened(table, log), log


def _assert_every_start_leads_to_the_same_table(table: DynamicTable) -> None:
    """Check that any snapshot plus the log from its offsets equals the table."""
    for snapshot_id in table.inspect.snapshots().column("snapshot_id").to_pylist():
        start = StreamPosition(snapshot_id=snapshot_id, split_index=0)
        assert applied(streamed(table, start)) == content(table), f"started at snapshot {snapshot_id}"


def test_what_is_committed_is_in_the_files_and_in_the_log() -> None:
    table = orders()

    table.append(rows("+I a 1 10", "+I a 2 20"))
    table.append(rows("+U a 1 11", "-D a 2 20"))

    assert content(table) == {"a 1 11"}
    assert streamed(table) == ["+I a 1 10", "+I a 2 20", "+U a 1 11", "-D a 2 20"]
    _assert_every_start_leads_to_the_same_table(table)


def test_the_same_identity_commits_once_however_often_it_is_replayed() -> None:
    table = orders()

    first = table.append(rows("+I a 1 10"), commit_user="query", commit_identifier=7)
    again = table.append(rows("+I a 1 10"), commit_user="query", commit_identifier=7)

    assert first is not None
    assert again == first
    assert streamed(table) == ["+I a 1 10"]


def test_a_writer_that_dies_between_snapshot_and_log_is_finished_by_the_next_opener() -> None:
    table, log = _breaking(orders())
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.append(rows("+I a 1 10"), commit_user="query", commit_identifier=1)
    assert streamed(table) == []

    log.dies_before_commit = False
    survivor = reopened(table)
    survivor.append(rows("+I a 2 20"))

    assert streamed(survivor) == ["+I a 1 10", "+I a 2 20"]
    _assert_every_start_leads_to_the_same_table(survivor)


def test_a_replay_of_the_commit_that_died_finishes_its_log_part_and_adds_nothing() -> None:
    table, log = _breaking(orders())
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.append(rows("+I a 1 10"), commit_user="query", commit_identifier=1)

    log.dies_before_commit = False
    reopened(table).append(rows("+I a 1 10"), commit_user="query", commit_identifier=1)

    assert streamed(table) == ["+I a 1 10"]
    assert table.inspect.snapshots().num_rows == 1


def test_a_transaction_lost_after_its_snapshot_is_published_again_at_once() -> None:
    table, log = _breaking(orders())
    log.loses_next_commits = 1

    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.append(rows("+U a 1 11"))

    assert streamed(table) == ["+I a 1 10", "+I b 2 20", "+U a 1 11"]
    _assert_every_start_leads_to_the_same_table(table)


def test_a_commit_of_which_a_bucket_was_never_told_is_published_again() -> None:
    table, log = _breaking(orders(bucket="2"))
    log.forgets_next_commits = 1

    table.append(rows("+I a 1 10", "+I b 2 20", "+I c 3 30"))
    table.append(rows("+U a 1 11"))

    assert sorted(streamed(table)) == ["+I a 1 10", "+I b 2 20", "+I c 3 30", "+U a 1 11"]
    _assert_every_start_leads_to_the_same_table(table)


def test_a_repair_that_is_lost_as_well_is_repaired_in_its_turn() -> None:
    table, log = _breaking(orders())
    log.loses_next_commits = 3

    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]
    _assert_every_start_leads_to_the_same_table(table)


def test_who_finds_a_commit_done_also_ends_its_log_transactions() -> None:
    table, log = _breaking(orders())
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.append(rows("+I a 1 10"), commit_user="job", commit_identifier=7)
    log.dies_before_commit = False
    assert streamed(table) == []

    assert table.new_write().committed("job", 8) is None
    snapshot = table.new_write().committed("job", 7)

    assert snapshot == table.context.file_store.snapshots.latest()
    assert streamed(table) == ["+I a 1 10"]


def test_an_untracked_commit_never_leaks_into_a_repair() -> None:
    table, log = _breaking(orders())
    log.dies_before_commit = True
    with pytest.raises(SimulatedCrash):
        table.append(rows("+I a 1 10"))
    log.dies_before_commit = False
    table.overwrite(rows("+I b 5 50"), change_tracking=False)
    log.loses_next_commits = 1

    table.append(rows("+I a 2 20"))

    assert streamed(table) == ["+I a 1 10", "+I a 2 20"]
    assert content(table) == {"a 1 10", "a 2 20", "b 5 50"}


def test_two_tasks_with_rows_of_one_bucket_are_refused_before_anything_is_visible() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")
    first, second = table.new_write().open_task(write_context), table.new_write().open_task(write_context)
    first.write(rows("+I a 1 10"))
    message = first.prepare_commit()
    second.write(rows("+I a 2 20"))

    with pytest.raises(InvalidInputError, match=r"storage_lib\.spark\.write"):
        table.new_write().commit(write_context, [message, second.prepare_commit()], 1)

    assert content(table) == set()
    assert streamed(table) == []
    assert table.context.leases.holder() is None


@pytest.mark.parametrize("task_index", [None, 0])
def test_a_transaction_that_timed_out_while_its_lease_lasted_is_to_be_written_again(task_index: int | None) -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")
    with table.new_write().open_task(write_context, task_index=task_index) as task:
        task.write(rows("+I a 1 10"))
        clock = table.environment.clock
        assert isinstance(clock, FakeClock)
        clock.pass_time(3600)

        with pytest.raises(LeaseLostError, match="timed out"):
            task.write(rows("+I a 2 20"))
    table.new_write().abort(write_context, [])
    table.append(rows("+I a 1 10"))
    assert streamed(table) == ["+I a 1 10"]


@pytest.mark.parametrize(("task_index", "error"), [(None, LeaseLostError), (0, InvalidInputError)])
def test_a_task_fenced_within_its_own_lease_blames_another_task_if_there_may_be_one(
    task_index: int | None, error: type[Exception]
) -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")
    with table.new_write().open_task(write_context, task_index=task_index) as task:
        task.write(rows("+I a 1 10"))
        assert table.log is not None
        table.log.begin(0)  # another task, or a stalled process that had read the lease before ours

        with pytest.raises(error):
            task.write(rows("+I a 2 20"))


def test_an_aborted_write_leaves_nothing_and_releases_its_lease() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")
    task = table.new_write().open_task(write_context)
    task.write(rows("+I a 1 10"))
    message = task.prepare_commit()

    table.new_write().abort(write_context, [message])

    assert table.inspect.snapshots().num_rows == 0
    assert table.context.leases.holder() is None
    table.append(rows("+I a 2 20"))
    assert streamed(table) == ["+I a 2 20"]


def test_a_task_that_leaves_without_a_word_is_undone() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="job")

    with table.new_write().open_task(write_context) as task:
        task.write(rows("+I a 1 10"))

    assert table.log is not None
    table.log.begin(1)  # another slot, which would not abort it
    assert table.log.latest_offsets().of(0) > 1  # the log continues after the aborted record


def test_a_sleeper_that_wakes_up_before_its_first_record_does_not_fence_its_successor() -> None:
    table = orders(None, **{"lease.timeout": "5 s"})
    sleeper = table.new_write().open_task(table.new_write().begin(commit_user="sleeper"))
    write_context = table.new_write().begin(commit_user="successor")
    successor = table.new_write().open_task(write_context)
    successor.write(rows("+I a 2 20"))

    with pytest.raises(LeaseLostError, match="taken over"):
        sleeper.write(rows("+I a 1 10"))
    sleeper.abort()
    successor.write(rows("+I a 3 30"))
    table.new_write().commit(write_context, [successor.prepare_commit()], 1)

    assert content(table) == {"a 2 20", "a 3 30"}
    assert streamed(table) == ["+I a 2 20", "+I a 3 30"]


def test_a_commit_under_another_lease_since_the_base_makes_a_writer_start_over() -> None:
    """The second rule must hold even if the lease was checked too early."""
    table = orders()
    stale = table.new_write().begin(commit_user="sleeper")
    task = table.new_write().open_task(replace(stale, lease=None))
    task.write(rows("+I a 1 10"))
    message = replace(task.prepare_commit(), transactions=())
    assert stale.lease is not None
    table.context.leases.release(stale.lease)
    table.append(rows("+I a 1 20"))
    lease = table.context.leases.acquire(holder="sleeper", commit_user="sleeper", purpose="write")

    with pytest.raises(LeaseLostError, match="another writer's lease"):
        table.new_write().commit(replace(stale, lease=lease), [message], 1)

    assert content(table) == {"a 1 20"}


def test_an_append_of_a_stranger_since_the_base_makes_a_writer_start_over() -> None:
    table = orders()
    write_context = table.new_write().begin(commit_user="writer")
    task = table.new_write().open_task(write_context)
    task.write(rows("+U a 1 11"))
    _append_as_a_stranger(table, "+I a 1 10")

    with pytest.raises(LeaseLostError, match="write again"):
        table.new_write().commit(write_context, [task.prepare_commit()], 1)
    table.append(rows("+U a 1 11"))

    assert content(table) == {"a 1 11"}
    assert streamed(table) == ["+I a 1 10", "+U a 1 11"]
    _assert_every_start_leads_to_the_same_table(table)


def test_appends_of_strangers_get_into_the_log_in_their_order() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    for change in ("+U a 1 11", "+U a 1 12", "+U a 1 13"):
        _append_as_a_stranger(table, change)

    table.append(rows("+I a 2 20"))

    assert streamed(table) == ["+I a 1 10", "+I a 1 11", "+I a 1 12", "+I a 1 13", "+I a 2 20"]
    assert content(table) == {"a 1 13", "a 2 20"} == applied(streamed(table))
    _assert_every_start_leads_to_the_same_table(table)


def _append_as_a_stranger(table: DynamicTable, change: str) -> None:
    """Append a row as an engine does that does not know the log."""
    newest = table.context.file_store.snapshots.latest()
    stranger = table.context.file_store.new_write(newest)
    (batch,) = rows(change).drop_columns(["_row_kind"]).cast(table.arrow_schema).to_batches()
    for partition, bucket, _ in group_rows(batch, table.schema):
        stranger.write(partition, bucket, batch, pa.array([0], pa.int8()))
    identifier = 1 if newest is None else newest.id + 1
    committable = Committable(commit_user="flink", commit_identifier=identifier, messages=stranger.prepare_commit())
    table.context.file_store.commit.commit(committable)


def test_bad_input_releases_the_lease() -> None:
    table = orders()

    with pytest.raises(InvalidInputError, match="row kind"):
        table.append(rows("+X a 1 10"))

    assert table.context.leases.holder() is None
    assert table.inspect.snapshots().num_rows == 0


def test_a_commit_without_rows_makes_no_snapshot() -> None:
    table = orders()

    assert table.append(rows()) is None
    assert table.inspect.snapshots().num_rows == 0


def test_compactions_and_untracked_commits_carry_the_offsets_forward() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))

    compacted = table.compact()
    overwritten = table.overwrite(rows("+I b 3 30"), change_tracking=False)

    before = SnapshotLogProperties.of_snapshot(table.context.file_store.snapshots.load(2))
    assert before is not None
    for snapshot in (compacted, overwritten):
        assert snapshot is not None
        part = SnapshotLogProperties.of_snapshot(snapshot)
        assert part is not None
        assert part.offsets == before.offsets
        assert not part.tracked


def test_a_writer_asks_the_log_once_what_became_of_its_own_transactions() -> None:
    """A commit is final; another process, which can't know the outcome, asks again."""
    table = orders()
    assert table.log is not None
    asked: list[tuple[TransactionHandle, ...]] = []

    class AskedLog(DelegatingLog):
        def end_all(self, handles: tuple[TransactionHandle, ...], *, commit: bool) -> tuple[EndOutcome, ...]:
            if handles:
                asked.append(handles)
            return super().end_all(handles, commit=commit)

    writer = reopened(table, AskedLog(table.log))
    for price in (1, 2, 3):
        writer.append(rows(f"+U a 1 {price}"))
    assert len(asked) == len(set(asked)) == 3

    reopened(table, AskedLog(table.log)).append(rows("+U a 1 4"))
    assert asked[3] == asked[2]
    assert streamed(table) == [f"+U a 1 {price}" for price in (1, 2, 3, 4)]


def test_a_streams_commit_looks_back_no_further_than_to_its_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage_lib.file_store.snapshot.commit_search._BATCH", 4)
    table = orders(None, **{"write-only": "true"})
    for n in range(30):
        table.append(rows(f"+I a {n} 1"))

    def commit(batch_id: int) -> int:
        """Commit in a new process; return the number of snapshots that it read."""
        files = FaultyFileIO(table.environment.file_io)
        stream = reopened_in(files, table, names=f"batch-{next(processes)}")
        write_context = replace(stream.new_write().begin(commit_user="query"), identifiers_ascend=True)
        task = stream.new_write().open_task(write_context)
        task.write(rows(f"+I b {batch_id} 1"))
        assert stream.new_write().commit(write_context, [task.prepare_commit()], batch_id) is not None
        return len({path for operation, path in files.calls if operation == "read_bytes" and "/snapshot-" in path})

    processes = count()
    assert commit(1) >= 30
    assert commit(2) <= 6
    assert commit(1) <= 6
    assert commit(3) <= 6
    assert table.inspect.snapshots().num_rows == 33
    assert content(table) >= {"b 1 1", "b 2 1", "b 3 1"}
