"""Everything that is not deterministic, in one value: files, clock and unique names. Tests replace it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO


class Clock(Protocol):
    """Source of time, and a way to wait."""

    def now_millis(self) -> int:
        """Return wall-clock time in epoch milliseconds. For storing and showing, never for ordering events."""

    def monotonic(self) -> float:
        """Return seconds that never decrease, for measuring durations in this process."""

    def sleep(self, seconds: float) -> None:
        """Wait for this many seconds."""


class SystemClock:
    """Clock of this machine."""

    def now_millis(self) -> int:
        """Return epoch milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds since an arbitrary moment in the past."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``; return at once if it is negative."""
        time.sleep(max(0.0, seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Clock, files and names for the library. ``new_name`` returns a unique string.

    ``file_io`` stores the warehouse, with all metadata. ``elsewhere`` routes paths to any store; None: there is no
    other store.
    """

    file_io: FileIO
    clock: Clock
    new_name: Callable[[], str]
    elsewhere: FileIO | None = None

    @property
    def stores(self) -> FileIO:
        """Storage of paths that may be on any store, as those of external data files are."""
        return self.file_io if self.elsewhere is None else self.elsewhere


def new_uuid() -> str:
    """Return a random UUID as text."""
    return str(uuid.uuid4())


def system_environment(file_io: FileIO | None = None) -> Environment:
    """Return this machine's clock, random names, and ``file_io`` or else the local disk. Picklable."""
    return Environment(file_io=file_io or LocalFileIO(), clock=SystemClock(), new_name=new_uuid)
