"""Deterministic environment: the clock advances on request, and names are numbered."""

from __future__ import annotations

import itertools
import threading

from storage_lib.io.environment import Environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO

STARTED_MILLIS = 1_715_648_523_456
"""2024-05-14 01:02:03.456 UTC."""


class FakeClock:
    """Clock that only ``sleep`` and ``pass_time`` advance; no call blocks. Thread-safe."""

    def __init__(self, now_millis: int = STARTED_MILLIS) -> None:
        self._started_millis = now_millis
        self._passed_seconds = 0.0
        self._lock = threading.Lock()
        self.slept: list[float] = []

    def now_millis(self) -> int:
        with self._lock:
            return self._started_millis + round(self._passed_seconds * 1000)

    def monotonic(self) -> float:
        with self._lock:
            return self._passed_seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.pass_time(seconds)

    def pass_time(self, seconds: float) -> None:
        with self._lock:
            self._passed_seconds += max(0.0, seconds)


class CountedNames:
    """Generates ``name-1``, ``name-2``, ... Thread-safe."""

    def __init__(self, prefix: str = "name") -> None:
        self._prefix = prefix
        self._numbers = itertools.count(1)

    def __call__(self) -> str:
        return f"{self._prefix}-{next(self._numbers)}"


def fake_environment(
    file_io: FileIO | None = None, *, clock: FakeClock | None = None, names: str = "name"
) -> Environment:
    """Return an environment, with files in memory by default; environments over the same files need other ``names``."""
    clock = clock or FakeClock()
    return Environment(
        file_io=file_io or MemoryFileIO(now_millis=clock.now_millis), clock=clock, new_name=CountedNames(names)
    )
