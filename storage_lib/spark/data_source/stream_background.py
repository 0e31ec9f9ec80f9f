"""Background work of the driver during a stream, in a separate thread that ends with the stream."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable


class StreamBackground(ABC):
    """Background thread of a stream that commits snapshots at an interval.

    ``error`` is the error of the last round, None if it succeeded; ``snapshot_count`` counts the committed snapshots.
    """

    def __init__(self, *, thread_name: str, interval_seconds: float) -> None:
        self._thread_name = thread_name
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.snapshot_count = 0
        self.error: Exception | None = None

    def start(self, *, until: Callable[[], bool]) -> None:
        """Start the thread; it ends by itself soon after ``until`` returns True."""
        self._thread = threading.Thread(target=self._run, args=(until,), name=self._thread_name, daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Ask the thread to end after its current round, and wait for it."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    @abstractmethod
    def _run(self, until: Callable[[], bool]) -> None:
        """Run rounds until ``_stopping`` is set or ``until`` returns True."""
