"""A bar appears when an operation has run for a while, and shows the newest report."""

from __future__ import annotations

import queue
import threading

import pytest

from storage_lib.progress import Progress
from storage_lib.progress.delayed_bar import DelayedBar


class PlayedTime(threading.Event):
    """Event that ends a bar; its waits end when the test calls ``pass_time``, or when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: queue.Queue[float | None] = queue.Queue()
        self._answers: queue.Queue[bool] = queue.Queue()

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.put(timeout)
        return self._answers.get(timeout=60)

    def set(self) -> None:
        super().set()
        self._answers.put(True)

    def pass_time(self) -> float | None:
        """Let the current wait time out; return its timeout in seconds."""
        seconds = self.waits.get(timeout=60)
        self._answers.put(False)
        return seconds


class Drawn:
    """Records the drawn text; on request fails like a closed terminal."""

    def __init__(self, *, error: Exception | None = None) -> None:
        self.reports: list[int] = []
        self.elapsed: list[float] = []
        self.closed = 0
        self._error = error

    def make(self, first: Progress, elapsed_seconds: float) -> Drawn:
        self.elapsed.append(elapsed_seconds)
        self.draw(first)
        return self

    def draw(self, progress: Progress) -> None:
        self.reports.append(progress.done)
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self.closed += 1


def report(done: int) -> Progress:
    return Progress(operation="compact", table="t", done=done, total=9, unit="buckets")


def test_an_operation_that_ends_before_the_delay_shows_nothing() -> None:
    time, drawn = PlayedTime(), Drawn()
    bar = DelayedBar(drawn.make, delay_seconds=1.0, closed=time)

    bar.show(report(0))
    bar.show(report(9))
    bar.close()

    assert time.waits.get_nowait() == 1.0
    assert (drawn.reports, drawn.closed) == ([], 0)


def test_after_the_delay_the_newest_report_is_drawn_again_and_again_and_the_last_one_at_the_end() -> None:
    time, drawn = PlayedTime(), Drawn()
    bar = DelayedBar(drawn.make, delay_seconds=1.0, closed=time)

    bar.show(report(0))
    bar.show(report(1))
    assert time.pass_time() == 1.0
    for done in (2, 3):
        seconds = time.waits.get(timeout=60)
        assert seconds is not None
        assert seconds < 1
        bar.show(report(done))
        time._answers.put(False)
    time.waits.get(timeout=60)
    bar.show(report(9))
    bar.close()

    assert drawn.elapsed == [1.0], "the clock of the bar began with the operation"
    assert drawn.reports == [1, 2, 3, 9]
    assert drawn.closed == 1


def test_without_a_delay_the_first_report_is_on_the_screen_when_the_operation_begins() -> None:
    time, drawn = PlayedTime(), Drawn()
    bar = DelayedBar(drawn.make, delay_seconds=0, closed=time)

    bar.show(report(0))
    assert drawn.reports == [0]
    bar.close()

    assert drawn.closed == 1


@pytest.mark.parametrize("error", [OSError("closed"), ValueError("I/O operation on closed file")])
def test_a_terminal_that_was_closed_does_not_end_the_operation(error: Exception) -> None:
    drawn = Drawn()
    bar = DelayedBar(lambda _first, _elapsed: drawn, delay_seconds=0, closed=PlayedTime())
    bar.show(report(0))
    drawn._error = error

    bar.show(report(9))
    bar.close()

    assert drawn.reports == [9]


def test_a_bar_that_was_never_told_anything_can_be_closed() -> None:
    drawn = Drawn()

    DelayedBar(drawn.make, delay_seconds=0).close()

    assert drawn.reports == []
