"""Progress of long operations as lines of the task's log."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from storage_lib.progress import Progress

__all__ = ["progress_in_log"]

SECONDS_BETWEEN_LINES = 30.0


@contextmanager
def progress_in_log(log: Any, *, monotonic: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Log the progress of the body's operations every 30 seconds; shorter operations log nothing.

    ``monotonic`` returns seconds.
    """
    from storage_lib.progress import report_to

    with report_to(_ProgressLines(log, monotonic)):
        yield


class _ProgressLines:
    """Logs a line every 30 seconds, and the last line of an operation that has logged any."""

    def __init__(self, log: Any, monotonic: Callable[[], float]) -> None:
        self._log = log
        self._monotonic = monotonic
        self._next_line = 0.0
        self._has_lines = False

    def __call__(self, progress: Progress) -> None:
        now = self._monotonic()
        if progress.done == 0:
            self._next_line, self._has_lines = now + SECONDS_BETWEEN_LINES, False
        elif now >= self._next_line or (self._has_lines and progress.done == progress.total):
            self._next_line, self._has_lines = now + SECONDS_BETWEEN_LINES, True
            self._log.info("%s", progress)
