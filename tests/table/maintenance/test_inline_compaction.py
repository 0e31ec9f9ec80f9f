"""A writer compacts after its commit; if the compaction fails, the commit stands and leaves no other files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from storage_lib import DynamicTable
from storage_lib.file_store.commit_message import BATCH_COMMIT_IDENTIFIER
from storage_lib.file_store.compact import CompactionTask
from storage_lib.file_store.snapshot.snapshot import CommitKind
from tests.support.faulty_file_io import Fault, FaultKind, FaultyFileIO
from tests.support.mortal_process import reopened_in
from tests.support.orders_table import content, orders, reopened, rows


def _orders(**options: str) -> DynamicTable:
    return orders(None, **{"num-sorted-run.compaction-trigger": "3", **options})


def _kinds(table: DynamicTable) -> list[str]:
    return table.inspect.snapshots().column("commit_kind").to_pylist()


def _levels(table: DynamicTable) -> list[int]:
    return sorted(table.inspect.files().column("level").to_pylist())


def _stray_files(table: DynamicTable) -> set[str]:
    """Return data files that no snapshot refers to."""
    named = {entry.file.file_name for each in _snapshots(table) for entry in table.context.file_store.scan.delta(each)}
    directory = f"{table.location}/dt=a/bucket-0"
    return {status.name for status in table.environment.file_io.list_directory(directory)} - named


def _snapshots(table: DynamicTable) -> list[Any]:
    history = table.context.file_store.snapshots
    return [history.load(snapshot_id) for snapshot_id in range(1, (history.latest_id() or 0) + 1)]


def _meanwhile(monkeypatch: pytest.MonkeyPatch, table: DynamicTable, act: Callable[[], object]) -> None:
    """Call ``act`` once, as another process, when this table's next compaction has written its files."""
    run = table.context.file_store.compact.run
    acts = [act]

    def run_and_lose(task: CompactionTask) -> object:
        message = run(task)
        while acts:
            acts.pop()()
        return message

    monkeypatch.setattr(table.context.file_store.compact, "run", run_and_lose)


def test_an_append_compacts_what_has_become_due_as_a_snapshot_of_its_own() -> None:
    table = _orders()

    snapshots = [table.append(rows(f"+I a 1 {n}")) for n in range(3)]

    assert [None if each is None else each.commit_kind for each in snapshots] == [CommitKind.APPEND] * 3
    assert _kinds(table) == ["APPEND", "APPEND", "APPEND", "COMPACT"]
    assert _levels(table) == [3]
    assert content(table) == {"a 1 2"}


def test_a_write_only_table_is_left_to_dedicated_jobs() -> None:
    table = _orders(write_only="true")

    for n in range(5):
        table.append(rows(f"+I a 1 {n}"))

    assert _kinds(table) == ["APPEND"] * 5
    assert table.compact(full=False) is not None


def test_only_the_buckets_just_written_are_looked_at() -> None:
    table = _orders()
    for n in range(3):
        table.new_write().commit(*_written(table, f"+I b 1 {n}"))

    table.append(rows("+I a 1 1"))

    assert _kinds(table) == ["APPEND"] * 4


def test_a_compaction_that_loses_a_race_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _orders()
    for n in range(2):
        table.append(rows(f"+I a 1 {n}"))
    _meanwhile(monkeypatch, table, lambda: reopened(table).compact())

    snapshot = table.append(rows("+I a 1 9"))

    assert snapshot is not None
    assert _kinds(table) == ["APPEND", "APPEND", "APPEND", "COMPACT"]
    assert _stray_files(table) == set()
    assert content(table) == {"a 1 9"}


@pytest.mark.parametrize(
    "options",
    [
        {"deletion-vectors.enabled": "true"},
        {"changelog-producer": "lookup"},
        {"changelog-producer": "full-compaction"},
        {"merge-engine": "first-row"},
    ],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("lost", [["a"], ["a", "b"]], ids=["some buckets", "all buckets"])
def test_a_writer_whose_rows_others_see_once_compacted_tries_again_after_a_lost_race(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], lost: list[str]
) -> None:
    table = _orders(**{"log.system": "none", **options})
    other = reopened(table)
    order, messages, identifier = _written(other, "+I a 1 1", "+I b 1 1")
    other.new_write().commit(order, messages, identifier)
    tasks = [task for each in lost for task in other.maintenance.plan_compaction({"dt": each})]
    made = [message for task in tasks if (message := other.maintenance.run_compaction(task))]
    _meanwhile(monkeypatch, table, lambda: other.maintenance.commit_compaction(made))

    table.append(rows("+I a 2 2", "+I b 2 2"))

    assert len(made) == len(lost)
    assert 0 not in _levels(table)
    assert content(table) == {"a 1 1", "b 1 1", "a 2 2", "b 2 2"}


def test_storage_that_fails_under_the_compaction_does_not_fail_the_append() -> None:
    table = _orders()
    for n in range(2):
        table.append(rows(f"+I a 1 {n}"))
    storage = FaultyFileIO(table.environment.file_io, Fault(FaultKind.FAIL, at=2, operation="open_output", path="dt=a"))

    snapshot = reopened_in(storage, table, names="other").append(rows("+I a 1 9"))

    assert snapshot is not None
    assert _kinds(table) == ["APPEND"] * 3
    assert _stray_files(table) == set()


def test_a_file_that_can_not_be_read_is_a_warning_not_a_failed_append() -> None:
    table = _orders()
    for n in range(2):
        table.append(rows(f"+I a 1 {n}"))
    (name,) = {entry.file.file_name for entry in table.context.file_store.scan.delta(_snapshots(table)[0])}
    table.environment.file_io.replace(f"{table.location}/dt=a/bucket-0/{name}", b"not Parquet")

    failed = r"the rows are committed, but the compaction after it failed: .*\.parquet was changed"
    with pytest.warns(RuntimeWarning, match=failed):
        snapshot = table.append(rows("+I a 2 9"))

    assert snapshot is not None
    assert _kinds(table) == ["APPEND"] * 3
    assert _stray_files(table) == set()


def test_a_writer_tries_again_where_runs_have_piled_up_to_the_stop_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _orders(**{"num_sorted_run.stop_trigger": "5"})

    def pile_up(count: int = 5) -> None:
        for n in range(count):
            other.new_write().commit(*_written(other, f"+I a {n} {n}"))

    def overwrite_and_pile_up() -> None:
        other.overwrite(rows("+I a 7 7"))
        pile_up()

    other = reopened(table)
    pile_up(4)
    _meanwhile(monkeypatch, table, overwrite_and_pile_up)

    order, messages, identifier = _written(table, "+I a 9 9")
    snapshot = table.new_write().commit(order, messages, identifier)
    assert snapshot is not None
    table.maintenance.compact_written(snapshot, messages, only_crowded=True)

    assert _kinds(table)[-1] == "COMPACT"
    assert len(_levels(table)) < 5
    assert content(table) == {"a 0 0", "a 1 1", "a 2 2", "a 3 3", "a 4 4", "a 7 7"}


@pytest.mark.parametrize("options", [{}, {"num_sorted_run.stop_trigger": "5"}])
def test_a_bucket_below_the_stop_trigger_keeps_no_engine_waiting(options: dict[str, str]) -> None:
    table = _orders(**options)
    for n in range(4):
        order, messages, identifier = _written(table, f"+I a 1 {n}")
        snapshot = table.new_write().commit(order, messages, identifier)
        assert snapshot is not None
        table.maintenance.compact_written(snapshot, messages, only_crowded=True)

    assert _kinds(table) == ["APPEND"] * 4


def _written(table: DynamicTable, *changes: str) -> tuple[Any, list[Any], int]:
    """Write as an engine does, up to the commit and without compaction."""
    order = table.new_write().begin(commit_user="engine")
    task = table.new_write().open_task(order)
    task.write(rows(*changes))
    return order, [task.prepare_commit()], BATCH_COMMIT_IDENTIFIER
