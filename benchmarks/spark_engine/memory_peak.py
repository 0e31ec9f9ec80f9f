"""Peak memory of a process and its descendants, sampled while something runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

_INTERVAL_SECONDS = 0.1


@dataclass
class Peak:
    """Largest sum of resident set sizes so far, in bytes. Pages that processes share count for each of them."""

    bytes: int = 0


@contextmanager
def sampled_memory(pid: int) -> Iterator[Peak]:
    """Sample the memory of the process ``pid`` and its descendants, at least once, until the body ends."""
    peak = Peak()

    def look() -> None:
        peak.bytes = max(peak.bytes, memory_of(pid))

    with repeated(look):
        yield peak


@contextmanager
def repeated(look: Callable[[], None]) -> Iterator[None]:
    """Call ``look`` ten times a second in a thread, at least once, until the body ends."""
    ended = threading.Event()

    def run() -> None:
        while True:
            look()
            if ended.wait(_INTERVAL_SECONDS):
                return

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def memory_of(pid: int) -> int:
    """Return the resident set sizes of a process and its descendants, in bytes; 0 if it has ended."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for each in family:
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total
