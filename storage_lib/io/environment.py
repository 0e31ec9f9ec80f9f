"""All that is not deterministic, in one value: files, clock and new names. Tests swap in their own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO


class Clock(Protocol):
    """The time, and waiting for it to pass."""

    def now_millis(self) -> int:
        """Wall clock: epoch milliseconds. To be stored and shown, never to decide who was first."""

    def monotonic(self) -> float:
        """Seconds that never go back, for measuring how long something took in this process."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of this machine."""

    def now_millis(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; not at all if ``seconds`` is negative."""
        time.sleep(max(0.0, seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Clock, files and names for the library. ``new_name`` returns a unique string."""

    file_io: FileIO
    clock: Clock
    new_name: Callable[[], str]


def new_uuid() -> str:
    """A random UUID in its usual spelling."""
    return str(uuid.uuid4())


def system_environment(file_io: FileIO | None = None) -> Environment:
    """This machine's clock and random names; files on the local disk unless ``file_io`` is given. Picklable."""
    return Environment(file_io=file_io or LocalFileIO(), clock=SystemClock(), new_name=new_uuid)
