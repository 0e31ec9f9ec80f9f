"""Count the steps of an operation and report them to the callback or bar of its context.

The callback is in a context variable, so that verbs need not pass it down to the code that does the work. An operation
inside another one reports nothing: for example, the compactions after the commits of an ingest are part of it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from storage_lib.errors import InvalidInputError, StorageError
from storage_lib.progress.automatic_bar import automatic_bar
from storage_lib.progress.progress import Progress, ProgressCallback, ProgressOption

_REPORTS_TO: ContextVar[ProgressOption] = ContextVar("progress", default=None)


@contextmanager
def report_to(progress: ProgressOption) -> Iterator[None]:
    """Report the operations of the body to a callback; False disables reports, None changes nothing.

    Applies to the current thread and asyncio task, not to threads that the body starts. Raises ``InvalidInputError``
    for anything else.
    """
    if progress is None:
        yield
        return
    _check(progress)
    token = _REPORTS_TO.set(progress)
    try:
        yield
    finally:
        _REPORTS_TO.reset(token)


@contextmanager
def operation(
    name: str, table: str, *, total: int | None, unit: str, bar_on_terminal: bool = True
) -> Iterator[Operation]:
    """Report the steps that the body counts, first at its start and last when it succeeds.

    End the body before the commit: an exception of the callback must not look like a failed commit.
    ``bar_on_terminal`` is False where something else draws a bar on the terminal.
    """
    to = _REPORTS_TO.get()
    bar = automatic_bar(on_terminal=bar_on_terminal) if to is None else None
    report = bar.show if bar is not None else to or None
    token = _REPORTS_TO.set(False)
    try:
        running = Operation(Progress(operation=name, table=table, done=0, total=total, unit=unit), report)
        yield running
        running.finish()
    finally:
        _REPORTS_TO.reset(token)
        if bar is not None:
            bar.close()


def _check(progress: object) -> None:
    if progress is not False and not callable(progress):
        message = f"progress is {progress!r}; give a function that takes a Progress, False, or None for the default"
        raise InvalidInputError(message)


class Operation:
    """Step counter of one operation. Thread-safe."""

    def __init__(self, started: Progress, report: ProgressCallback | None) -> None:
        self._last = started
        self._done = started.done
        self._report = report
        self._lock = threading.Lock()
        if report is not None:
            _call(report, started)

    def advance(self, steps: int = 1) -> None:
        """Report completed steps, except the last one, which ``finish`` reports.

        Steps beyond the total are not counted: a total may be an estimate.
        """
        if self._report is None or not steps:
            return
        with self._lock:
            self._done += steps
            if self._last.total is None or self._done < self._last.total:
                self._last = replace(self._last, done=self._done)
                _call(self._report, self._last)

    def finish(self) -> None:
        """Report that all steps are done. Idempotent."""
        if self._report is None:
            return
        with self._lock:
            total = self._done if self._last.total is None else self._last.total
            if self._last.done != self._last.total:
                self._last = replace(self._last, done=total, total=total)
                _call(self._report, self._last)


def _call(report: ProgressCallback, progress: Progress) -> None:
    """Call ``report``. Its ``StorageError`` becomes the cause of a ``RuntimeError``.

    Otherwise, the error of a callback that uses another table would look like one of this operation, which is retried
    after a ``CommitConflictError``.
    """
    try:
        report(progress)
    except StorageError as error:
        message = (
            f"table {progress.table}: the progress callback of {progress.operation} raised {type(error).__name__}: "
            f"{error}"
        )
        raise RuntimeError(message) from error
