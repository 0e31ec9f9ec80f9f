"""Peak memory of a process and its descendants, sampled while something runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
    peak, ended = Peak(), threading.Event()

    def sample() -> None:
        while True:
            peak.bytes = max(peak.bytes, memory_of(pid))
            if ended.wait(_INTERVAL_SECONDS):
                return

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peak
    finally:
        ended.set()
        sampler.join()


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
