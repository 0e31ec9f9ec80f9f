"""Calls of a progress callback during an operation."""

from __future__ import annotations

import threading

import pytest

from storage_lib import InvalidInputError
from storage_lib.progress import Progress, report_to
from storage_lib.progress.operation import operation
from tests.support.recorded_progress import RecordedProgress


def run(name: str = "compact", *, steps: int = 3, total: int | None = 3) -> None:
    with operation(name, "shop.orders", total=total, unit="buckets") as running:
        for _ in range(steps):
            running.advance()


def counts(told: RecordedProgress) -> list[tuple[int, int | None]]:
    return [(report.done, report.total) for report in told.reports]


def test_every_step_is_reported_once_and_the_last_one_when_the_operation_succeeds() -> None:
    told = RecordedProgress()

    with report_to(told), operation("compact", "shop.orders", total=3, unit="buckets") as running:
        for _ in range(3):
            running.advance()
        assert counts(told) == [(0, 3), (1, 3), (2, 3)], "what is left to be done belongs to the last step"

    assert counts(told) == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert told.reports[-1] == Progress(operation="compact", table="shop.orders", done=3, total=3, unit="buckets")


def test_an_unknown_total_is_known_at_the_end() -> None:
    told = RecordedProgress()

    with report_to(told):
        run(steps=2, total=None)

    assert counts(told) == [(0, None), (1, None), (2, None), (2, 2)]


@pytest.mark.parametrize("total", [0, None])
def test_an_operation_without_steps_ends_with_none_of_none(total: int | None) -> None:
    told = RecordedProgress()

    with report_to(told):
        run(steps=0, total=total)

    assert counts(told)[-1] == (0, 0)
    assert counts(told).count((0, 0)) == 1


def test_a_total_that_was_estimated_too_low_or_too_high_is_reached_once() -> None:
    for steps in (1, 9):
        told = RecordedProgress()
        with report_to(told):
            run(steps=steps)
        assert told.operations == [("compact", 3, "buckets")]


def test_an_operation_that_fails_is_not_reported_as_done() -> None:
    told = RecordedProgress()

    def run_until_the_disk_is_full() -> None:
        with operation("rewrite", "shop.orders", total=1, unit="files") as files:
            files.advance()
            message = "disk full"
            raise OSError(message)

    with report_to(told), pytest.raises(OSError, match="disk full"):
        run_until_the_disk_is_full()

    assert counts(told) == [(0, 1)]


def test_an_operation_inside_another_one_is_a_part_of_it() -> None:
    told = RecordedProgress()

    with report_to(told), operation("ingest", "shop.orders", total=1, unit="offsets"):
        run()
    with report_to(told):
        run()

    assert told.operations == [("ingest", 1, "offsets"), ("compact", 3, "buckets")]


def test_the_innermost_callback_counts_and_false_silences_it() -> None:
    outer, inner = RecordedProgress(), RecordedProgress()

    with report_to(outer):
        with report_to(inner):
            run("inner")
        with report_to(False):
            run("silent")
        with report_to(None):
            run("outer")

    assert [name for name, *_ in inner.operations] == ["inner"]
    assert [name for name, *_ in outer.operations] == ["outer"]


def test_an_exception_of_the_callback_ends_the_operation() -> None:
    told = RecordedProgress(fails_at=2, error=ZeroDivisionError())

    with pytest.raises(ZeroDivisionError), report_to(told):
        run()

    assert counts(told) == [(0, 3), (1, 3), (2, 3)]
    after = RecordedProgress()
    with report_to(after):
        run()
    assert after.operations == [("compact", 3, "buckets")], "the next operation is reported as any other"


@pytest.mark.parametrize("wrong", [True, "bar", 1])
def test_what_is_not_a_callback_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInputError, match="give a function that takes a Progress"), report_to(wrong):  # type: ignore[arg-type]
        pass


def test_threads_count_together_and_are_reported_one_at_a_time() -> None:
    told: list[int] = []
    overlaps: list[int] = []
    inside = threading.Lock()

    def note(progress: Progress) -> None:
        if not inside.acquire(blocking=False):
            overlaps.append(progress.done)
            return
        told.append(progress.done)
        inside.release()

    with report_to(note), operation("compact", "t", total=400, unit="buckets") as running:

        def work() -> None:
            for _ in range(100):
                running.advance()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert overlaps == []
    assert told == list(range(401))


def test_a_callback_is_not_that_of_other_threads() -> None:
    told = RecordedProgress()

    with report_to(told):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()

    assert told.reports == []


def test_a_report_reads_as_a_line() -> None:
    known = Progress(operation="rewrite", table="shop.orders", done=1200, total=6400, unit="files")
    unknown = Progress(operation="overwrite", table="shop.orders", done=1200, total=None, unit="rows")

    assert str(known) == "rewrite shop.orders: 1,200 of 6,400 files"
    assert str(unknown) == "overwrite shop.orders: 1,200 rows"
