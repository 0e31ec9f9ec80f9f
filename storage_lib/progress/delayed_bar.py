"""A progress bar that appears after a delay and is drawn by its own thread.

The operation only hands over its newest report, so that a slow terminal does not slow it down. The bar also appears,
and its clock runs, while an operation has not finished its first step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol

from storage_lib.progress.progress import Progress

_REFRESH_SECONDS = 0.2
_TERMINAL_ERRORS = (OSError, ValueError)
"""Errors of a terminal that was closed during the operation; ignored, since nobody would see them."""


class Bar(Protocol):
    """A bar on the screen. One thread at a time uses it."""

    def draw(self, progress: Progress) -> None:
        """Draw a report and the elapsed time."""

    def close(self) -> None:
        """Stop drawing; the bar stays as it was drawn last."""


class DelayedBar:
    """Shows a bar after a delay. ``make`` creates it from the newest report and the elapsed seconds."""

    def __init__(
        self,
        make: Callable[[Progress, float], Bar],
        *,
        delay_seconds: float,
        closed: threading.Event | None = None,
    ) -> None:
        self._make = make
        self._delay_seconds = delay_seconds
        self._closed = closed or threading.Event()
        self._newest: Progress | None = None
        self._bar: Bar | None = None
        # Runs in the operation's context, from which a notebook determines the cell of an output.
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name="progress", daemon=True)

    def show(self, progress: Progress) -> None:
        """Store a report; the first one starts the delay."""
        is_first, self._newest = self._newest is None, progress
        if not is_first:
            return
        if self._delay_seconds <= 0:
            self._open()
        self._thread.start()

    def close(self) -> None:
        """Draw the last report if the bar is shown, and close it."""
        self._closed.set()
        try:
            if self._thread.is_alive():
                self._thread.join()
            self._draw()
        finally:
            # Runs after Ctrl-C as well: rich hides the cursor until the bar is closed.
            if self._bar is not None:
                with suppress(*_TERMINAL_ERRORS):
                    self._bar.close()

    def _run(self) -> None:
        if self._bar is None:
            if self._closed.wait(self._delay_seconds):
                return
            self._open()
        while self._bar is not None and not self._closed.wait(_REFRESH_SECONDS):
            self._draw()

    def _open(self) -> None:
        if self._newest is not None:
            with suppress(*_TERMINAL_ERRORS):
                self._bar = self._make(self._newest, self._delay_seconds)

    def _draw(self) -> None:
        if self._bar is not None and self._newest is not None:
            with suppress(*_TERMINAL_ERRORS):
                self._bar.draw(self._newest)
