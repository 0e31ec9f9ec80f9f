"""A query that Spark ends because a Python process was late starts again; any other end is the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from storage_lib.spark.verbs.repeated_query import RepeatedQuery

LATE = "[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back."
OTHER = "[STREAM_FAILED] Query terminated with exception: / by zero"


class FakeQuery:
    """A query that ends with ``error`` once it is told to, or without one when it is stopped."""

    def __init__(self, error: str | None, *, has_progress: bool = False) -> None:
        self._error = None if error is None else StreamingQueryException(error)
        self._ended = threading.Event()
        self.lastProgress = object() if has_progress else None
        self.stop_count = 0
        if error is not None:
            self._ended.set()

    def awaitTermination(self) -> None:  # noqa: N802  Spark's name
        assert self._ended.wait(60)
        if self._error is not None:
            raise self._error

    def processAllAvailable(self) -> None:  # noqa: N802  Spark's name
        if self._error is not None:
            raise self._error

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        self.stop_count += 1
        self._ended.set()


def repeated(
    *queries: FakeQuery, pauses: tuple[float, ...] = (0.0,), release: Callable[[], None] = lambda: None
) -> RepeatedQuery:
    left: Iterator[Any] = iter(queries)
    return RepeatedQuery(lambda: next(left), name="table t", release=release, pauses=pauses)


def test_a_late_process_starts_the_query_again_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    last = FakeQuery(None)
    running: Any = last
    released: list[bool] = []

    with caplog.at_level(logging.WARNING):
        query = repeated(FakeQuery(LATE), last, release=lambda: released.append(True))
        query.process_all_available()

    assert query.current is running
    assert (query.is_active, query.failure(), query.start_count, released) == (True, None, 2, [True])
    assert "table t: a Python process of Spark did not start in time" in caplog.text
    query.stop()
    assert (query.is_active, last.stop_count) == (False, 1)


def test_another_error_ends_the_query_at_once() -> None:
    query = repeated(FakeQuery(OTHER), FakeQuery(None))

    with pytest.raises(StreamingQueryException, match="by zero"):
        query.process_all_available()
    with pytest.raises(StreamingQueryException, match="by zero"):
        query.wait_for_end(60)

    assert (query.is_active, query.start_count, str(query.failure())) == (False, 1, OTHER)


def test_the_query_ends_after_the_last_pause_without_a_finished_micro_batch() -> None:
    failing: list[Any] = [FakeQuery(LATE, has_progress=index == 1) for index in range(4)]

    query = repeated(*failing, FakeQuery(None), pauses=(0.0, 0.0))

    with pytest.raises(StreamingQueryException, match="connect back"):
        query.wait_for_end(60)
    with pytest.raises(StreamingQueryException, match="connect back"):
        query.process_all_available()
    assert query.current is failing[3], "two in a row, twice, because one finished a micro-batch"


def test_a_query_that_is_stopped_in_a_pause_does_not_start_again() -> None:
    late: Any = FakeQuery(LATE)
    query = repeated(late, FakeQuery(None), pauses=(3600.0,))

    query.stop()

    assert query.current is late
    assert (query.is_active, query.start_count) == (False, 1)


def test_an_error_of_the_start_ends_the_query() -> None:
    def fail() -> None:
        raise OSError("the checkpoint is gone")

    query = repeated(FakeQuery(LATE), release=fail)

    with pytest.raises(OSError, match="the checkpoint is gone"):
        query.wait_for_end(60)
    assert isinstance(query.failure(), OSError)


def test_a_wait_with_a_limit_ends_before_the_query() -> None:
    query = repeated(FakeQuery(None))

    assert not query.wait_for_end(0.0)
    query.stop()
    assert query.wait_for_end(60)
