"""Work of the driver during a stream, in a thread of its own that ends with the stream."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable


class BesideStream(ABC):
    """One thread that makes snapshots by interval.

    ``error`` is what the last round failed with, None when it went well; ``snapshot_count`` the snapshots made.
    """

    def __init__(self, *, thread_name: str, interval_seconds: float) -> None:
        self._thread_name = thread_name
        self._interval_seconds = interval_seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.snapshot_count = 0
        self.error: Exception | None = None

    def start(self, *, until: Callable[[], bool]) -> None:
        """Start the thread; it ends by itself soon after ``until`` has become true."""
        self._thread = threading.Thread(target=self._run, args=(until,), name=self._thread_name, daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float) -> None:
        """Ask the thread to end after the round it is in, and wait for that."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    @abstractmethod
    def _run(self, until: Callable[[], bool]) -> None:
        """Do rounds until ``_stopping`` is set or ``until`` is true."""
