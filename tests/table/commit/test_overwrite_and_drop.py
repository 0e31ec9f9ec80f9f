"""Replacing partitions: content of the files, changes in the log, and conflicts with a stream."""

from __future__ import annotations

import pytest

from storage_lib import CommitConflictError, InvalidInputError, MemoryCatalog, NotFoundError
from storage_lib.table.commit.table_overwrite import scope_of
from tests.support.every_file import data_files
from tests.support.fake_environment import fake_environment
from tests.support.orders_table import COLUMNS, NAME, content, orders, rows, streamed


def test_an_untracked_overwrite_replaces_the_partitions_of_its_rows_and_the_log_hears_nothing() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    table.overwrite(rows("+I a 9 90"), change_tracking=False)

    assert content(table) == {"a 9 90", "b 2 20"}
    assert streamed(table) == ["+I a 1 10", "+I b 2 20"]


def test_a_tracked_overwrite_tells_the_log_what_is_gone_changed_and_new() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I a 2 20", "+I a 3 30", "+I b 4 40"))

    table.overwrite(rows("+I a 2 21", "+I a 3 30", "+I a 5 50"))

    assert content(table) == {"a 2 21", "a 3 30", "a 5 50", "b 4 40"}
    assert sorted(streamed(table)[4:]) == ["+I a 5 50", "+U a 2 21", "-D a 1 10"]


def test_an_overwrite_of_the_whole_table_without_rows_empties_it() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    table.overwrite(rows(), partition={}, change_tracking=False)

    assert content(table) == set()


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("primary_key", [["id"], []])
def test_an_overwrite_without_rows_empties_a_table_without_partitions(
    primary_key: list[str],
    tracked: bool,  # noqa: FBT001
) -> None:
    catalog = MemoryCatalog(environment=fake_environment())
    table = catalog.create_table(NAME, COLUMNS, primary_key=primary_key)
    table.append(rows("+I a 1 10", "+I b 2 20"))
    table.overwrite(COLUMNS.empty_table(), change_tracking=tracked)
    assert content(table) == set()


def test_what_a_stream_commits_while_an_overwrite_runs_wins() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I a 2 20"))
    order = table.new_write().begin(commit_user="backfill", tracked=False, overwrite=scope_of(None))
    task = table.new_write().open_task(order)
    task.write(rows("+I a 1 77", "+I a 2 88"))

    table.append(rows("+U a 1 11"))
    table.new_write().commit(order, [task.prepare_commit()], 1)

    assert content(table) == {"a 1 11", "a 2 88"}


def test_an_overwrite_whose_files_were_compacted_away_conflicts_and_leaves_nothing() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))
    order = table.new_write().begin(commit_user="backfill", tracked=False, overwrite=scope_of(None))
    task = table.new_write().open_task(order)
    task.write(rows("+I a 9 90"))
    table.compact()

    with pytest.raises(CommitConflictError):
        table.new_write().commit(order, [task.prepare_commit()], 1)

    assert content(table) == {"a 1 10", "a 2 20"}
    table.overwrite(rows("+I a 9 90"), change_tracking=False)
    assert content(table) == {"a 9 90"}


def test_a_compaction_that_loses_against_an_overwrite_is_dropped_and_may_be_run_again() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))
    table.append(rows("+I a 2 20"))
    (task,) = table.maintenance.plan_compaction()
    message = table.maintenance.run_compaction(task)
    assert message is not None
    table.overwrite(rows("+I a 9 90"), change_tracking=False)

    with pytest.raises(CommitConflictError):
        table.maintenance.commit_compaction([message])

    assert content(table) == {"a 9 90"}


def test_a_compaction_that_loses_one_bucket_to_an_overwrite_keeps_the_others() -> None:
    table = orders()
    for amount in (1, 2):
        table.append(rows(f"+I a 1 {amount}", f"+I b 1 {amount}"))
    messages = [table.maintenance.run_compaction(task) for task in table.maintenance.plan_compaction()]
    table.overwrite(rows("+I a 9 90"), partition={"dt": "a"}, change_tracking=False)
    before = data_files(table)

    committed = table.maintenance.commit_compaction([message for message in messages if message is not None])

    assert committed is not None
    assert len(messages) == 2
    assert content(table) == {"a 9 90", "b 1 2"}
    levels = table.inspect.files().select(["partition", "level"]).to_pylist()
    assert sorted((each["partition"], each["level"] > 0) for each in levels) == [("dt=a", True), ("dt=b", True)]
    # The output of the failed bucket was deleted when the commit proceeded without it.
    assert len(before - data_files(table)) == 1


def test_rows_outside_of_the_named_partition_are_refused() -> None:
    table = orders()

    with pytest.raises(InvalidInputError, match="partition dt=b"):
        table.overwrite(rows("+I a 1 10", "+I b 2 20"), partition={"dt": "a"}, change_tracking=False)

    assert table.inspect.snapshots().num_rows == 0


def test_dropping_a_partition_untracked_leaves_the_log_alone() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    table.maintenance.drop_partitions([{"dt": "a"}])

    assert content(table) == {"b 2 20"}
    assert streamed(table) == ["+I a 1 10", "+I b 2 20"]


def test_dropping_a_partition_tracked_deletes_its_rows_downstream() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20"))

    table.maintenance.drop_partitions([{"dt": "a"}], change_tracking=True)

    assert content(table) == {"b 2 20"}
    assert streamed(table)[2:] == ["-D a 1 10"]


def test_dropping_several_partitions_tracked_is_one_commit() -> None:
    table = orders()
    table.append(rows("+I a 1 10", "+I b 2 20", "+I c 3 30"))

    table.maintenance.drop_partitions([{"dt": "a"}, {"dt": "c"}], change_tracking=True)

    assert content(table) == {"b 2 20"}
    assert sorted(streamed(table)[3:]) == ["-D a 1 10", "-D c 3 30"]
    assert table.inspect.snapshots().num_rows == 2


def test_dropping_a_partition_that_is_not_there_drops_none_of_the_others() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))

    with pytest.raises(NotFoundError, match="no partition"):
        table.maintenance.drop_partitions([{"dt": "a"}, {"dt": "z"}])

    assert content(table) == {"a 1 10"}


@pytest.mark.parametrize("spec", [{}, {"price": 3}, {"dt": 3}])
def test_a_spec_that_names_no_partition_is_refused(spec: dict[str, object]) -> None:
    table = orders()
    table.append(rows("+I a 1 10"))

    with pytest.raises(InvalidInputError):
        table.maintenance.drop_partitions([spec])


def test_an_overwrite_under_one_identity_happens_once() -> None:
    table = orders()
    table.append(rows("+I a 1 10"))

    for _ in range(2):
        table.overwrite(rows("+I a 9 90"), change_tracking=False, commit_user="dag", commit_identifier=5)
        table.append(rows("+I a 2 20"), commit_user="query", commit_identifier=1)

    assert content(table) == {"a 2 20", "a 9 90"}


def test_a_table_that_ignores_deletions_has_no_tracked_overwrite_or_drop_that_its_log_would_lack() -> None:
    table = orders(ignore_delete="true")
    table.append(rows("+I a 1 1", "+I b 1 1"))

    with pytest.raises(InvalidInputError, match=r"ignores deletions.*use change_tracking=False"):
        table.overwrite(rows("+I a 2 2"))
    with pytest.raises(InvalidInputError, match=r"ignores deletions.*use change_tracking=False"):
        table.maintenance.drop_partitions([{"dt": "b"}], change_tracking=True)

    table.overwrite(rows("+I a 2 2"), change_tracking=False)
    assert content(table) == {"a 2 2", "b 1 1"}
