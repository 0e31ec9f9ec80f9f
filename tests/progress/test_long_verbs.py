"""Reports of the long verbs; a callback that fails leaves the table unchanged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from storage_lib import DynamicTable, MemoryCatalog
from storage_lib.errors import CommitConflictError
from storage_lib.progress import Progress, ProgressOption, report_to
from storage_lib.table.maintenance import file_maintenance
from tests.support.every_file import data_files, every_file
from tests.support.fake_environment import fake_environment
from tests.support.recorded_progress import RecordedProgress

BUCKETS = 4
COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string())])
NAME = "shop.orders"


def new_table(options: Mapping[str, str] | None = None, *, primary_key: Sequence[str] = ("id",)) -> DynamicTable:
    """Create four buckets of two files each, without automatic compaction."""
    given = {"bucket": str(BUCKETS), "write-only": "true", **(options or {})}
    table = MemoryCatalog(environment=fake_environment()).create_table(
        NAME, COLUMNS, primary_key=primary_key, options=given
    )
    for version in "ab":
        table.append(rows(version))
    return table


def rows(version: str, count: int = 40) -> pa.Table:
    return pa.table({"id": range(count), "v": [version] * count}, schema=COLUMNS)


def values(table: DynamicTable) -> set[str]:
    return set(table.refresh().to_arrow()["v"].to_pylist())


def overwrite_by_reader(table: DynamicTable, progress: ProgressOption) -> Any:
    reader = pa.RecordBatchReader.from_batches(COLUMNS, [*rows("x").to_batches(), *rows("y").to_batches()])
    return table.overwrite(reader, partition={}, change_tracking=False, progress=progress)


VERBS: dict[str, tuple[Callable[[DynamicTable, ProgressOption], Any], list[tuple[str, int, str]]]] = {
    "compact": (lambda table, progress: table.compact(progress=progress), [("compact", BUCKETS, "buckets")]),
    "compact some buckets": (
        lambda table, progress: table.compact(buckets=[({}, 1), ({}, 3)], progress=progress),
        [("compact", 2, "buckets")],
    ),
    "compact what was planned": (
        lambda table, progress: table.maintenance.compact_planned(
            table.maintenance.plan_compaction()[:3], progress=progress
        ),
        [("compact", 3, "buckets")],
    ),
    "overwrite": (
        lambda table, progress: table.overwrite(rows("x"), partition={}, change_tracking=False, progress=progress),
        [("overwrite", 40, "rows")],
    ),
    "overwrite by a reader": (overwrite_by_reader, [("overwrite", 80, "rows")]),
    "overwrite by nothing": (
        lambda table, progress: table.overwrite(rows("x", 0), partition={}, change_tracking=False, progress=progress),
        [("overwrite", 0, "rows")],
    ),
    "tracked overwrite": (
        lambda table, progress: table.overwrite(rows("x"), partition={}, change_tracking=True, progress=progress),
        [("overwrite", 40, "rows"), ("compare", BUCKETS, "buckets")],
    ),
    "rewrite": (
        lambda table, progress: table.rewrite(options={"bucket": "2"}, progress=progress),
        [("rewrite", 2 * BUCKETS, "files")],
    ),
}
EVERY_VERB = pytest.mark.parametrize("verb", VERBS)


@EVERY_VERB
def test_a_verb_counts_its_work_to_the_end(verb: str) -> None:
    call, expected = VERBS[verb]
    told = RecordedProgress()

    call(new_table(), told)

    assert told.operations == expected
    assert {report.table for report in told.reports} == {NAME}
    for name, total, unit in expected:
        steps = [report.done for report in told.reports if report.operation == name]
        assert unit != "buckets" or steps == list(range(total + 1))
        assert len(steps) <= 2 * BUCKETS + 2, "at most a report for each bucket, file or batch"


@EVERY_VERB
def test_report_to_applies_to_every_verb_of_its_body_and_false_silences_one(verb: str) -> None:
    call, expected = VERBS[verb]
    told = RecordedProgress()

    with report_to(told):
        call(new_table(), None)
        assert told.operations == expected
        told.reports.clear()
        call(new_table(), False)

    assert told.reports == []


@EVERY_VERB
@pytest.mark.parametrize("at", ["first", "last"])
def test_a_callback_that_fails_ends_the_verb_before_its_commit_and_leaves_no_file(verb: str, at: str) -> None:
    call, expected = VERBS[verb]
    table = new_table()
    _, total, _ = expected[-1]
    before = (table.inspect.latest_snapshot_id(), values(table), data_files(table))
    told = RecordedProgress(fails_at=0 if at == "first" else total, error=ZeroDivisionError("display"))

    with pytest.raises(ZeroDivisionError, match="display") as failed:
        call(table, told)

    assert failed.value.committed is False  # type: ignore[attr-defined]
    assert (table.inspect.latest_snapshot_id(), values(table), data_files(table)) == before
    again = RecordedProgress()
    call(table, again)
    assert again.operations == expected


@EVERY_VERB
@pytest.mark.parametrize("error", [KeyboardInterrupt(), CommitConflictError("of another table")])
def test_an_interrupt_and_an_error_of_the_library_end_the_verb_like_any_other(verb: str, error: BaseException) -> None:
    call, expected = VERBS[verb]
    table = new_table()
    before = (table.inspect.latest_snapshot_id(), values(table), data_files(table))
    told = RecordedProgress(fails_at=expected[-1][1], error=error)

    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else RuntimeError) as failed:
        call(table, told)

    assert isinstance(error, KeyboardInterrupt) or failed.value.__cause__ is error
    assert (table.inspect.latest_snapshot_id(), values(table), data_files(table)) == before


@pytest.mark.parametrize("tracked", [False, True])
def test_the_last_report_comes_while_the_writer_still_renews_its_lease(*, tracked: bool) -> None:
    """The writer stores its rows at its end, and renews its lease until then."""
    table = new_table()
    files: dict[str, list[object]] = {}

    def look(progress: Progress) -> None:
        files.setdefault(progress.operation, []).append(data_files(table))

    table.overwrite(rows("x"), partition={}, change_tracking=tracked, progress=look)

    assert set(files) == ({"overwrite", "compare"} if tracked else {"overwrite"})
    for seen in files.values():
        assert seen[-1] == seen[0]


def test_an_interrupted_rewrite_is_repeated_and_completed() -> None:
    table = new_table(primary_key=[])
    told = RecordedProgress(fails_at=4, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        table.rewrite(options={"bucket": "2"}, progress=told)
    again = RecordedProgress()

    rewritten = table.rewrite(options={"bucket": "2"}, progress=again)

    assert again.operations == [("rewrite", 2 * BUCKETS, "files")]
    assert rewritten.count() == 80


def test_buckets_that_are_compacted_side_by_side_are_reported_by_the_thread_that_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_maintenance, "_SIDE_BY_SIDE_BYTES_MIN", 0)
    told, threads = RecordedProgress(), set()
    table = new_table()

    def note(progress: Any) -> None:
        threads.add(threading.current_thread())
        told(progress)

    table.compact(progress=note)

    assert [report.done for report in told.reports] == list(range(BUCKETS + 1))
    assert threads == {threading.current_thread()}


def test_buckets_that_are_compacted_side_by_side_leave_no_file_when_the_callback_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_maintenance, "_SIDE_BY_SIDE_BYTES_MIN", 0)
    table = new_table()
    before = data_files(table)

    with pytest.raises(ZeroDivisionError):
        table.compact(progress=RecordedProgress(fails_at=2, error=ZeroDivisionError()))

    assert data_files(table) == before
    assert table.inspect.latest_snapshot_id() == 2


def test_where_there_is_nothing_to_do_nothing_is_reported() -> None:
    table = new_table()
    table.compact()
    told = RecordedProgress()

    assert table.compact(progress=told) is None

    assert told.reports == []


def test_a_compaction_after_an_append_is_reported_and_its_callback_can_not_fail_the_append() -> None:
    table = new_table({"write-only": "false", "num-sorted-run.compaction-trigger": "3"})
    told = RecordedProgress()

    with report_to(told):
        table.append(rows("c"))
    assert told.operations == [("compact", BUCKETS, "buckets")]

    table.append(rows("d"))
    told = RecordedProgress(fails_at=1, error=ZeroDivisionError("display"))
    with report_to(told), pytest.warns(RuntimeWarning, match="the rows are committed, but the compaction.*display"):
        table.append(rows("e"))
    assert values(table) == {"e"}

    told = RecordedProgress(fails_at=1, error=KeyboardInterrupt())
    with report_to(told), pytest.raises(KeyboardInterrupt) as interrupted:
        table.append(rows("f"))
    assert interrupted.value.committed is True  # type: ignore[attr-defined]
    assert values(table) == {"f"}


def test_an_orphan_cleanup_counts_the_files_it_finds_and_those_it_deletes() -> None:
    table = new_table()
    files, location = table.environment.file_io, table.location
    for number in range(3):
        files.write_bytes(f"{location}/bucket-0/data-stray-{number}.parquet", b"x")
    listed, deleted = RecordedProgress(), RecordedProgress()

    found = table.maintenance.remove_orphan_files(older_than=timedelta(0), dry_run=True, progress=listed)
    table.maintenance.remove_orphan_files(older_than=timedelta(0), progress=deleted)

    [(name, total, unit)] = listed.operations
    assert (name, unit) == ("find orphans", "files")
    assert total is not None
    assert 2 * BUCKETS + 3 <= total <= len(every_file(files, location)) + 3
    assert deleted.operations == [(name, total, unit), ("delete orphans", 3, "files")]
    assert len(found.paths) == 3
    assert not any("stray" in path for path in every_file(files, location))


def test_an_orphan_cleanup_is_reported_in_steps_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage_lib.file_store.orphan_files._LISTED_AT_ONCE", 4)
    told = RecordedProgress()

    new_table().maintenance.remove_orphan_files(older_than=timedelta(0), progress=told)

    [(_, total, _)] = told.operations
    steps = [report.done for report in told.reports]
    assert total is not None
    assert set(range(4, 2 * BUCKETS, 4)) <= set(steps)
    assert steps[-1] == total
    assert len(steps) <= total // 4 + 4


def test_a_read_of_several_buckets_counts_their_files() -> None:
    table = new_table()
    told = RecordedProgress()

    with report_to(told):
        assert table.to_arrow().num_rows == 40

    assert told.operations == [("read", 2 * BUCKETS, "files")]
