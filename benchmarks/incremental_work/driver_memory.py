"""Peak memory of a driver by kind of process: its Python, its JVM, and the Python workers of its tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

_INTERVAL_SECONDS = 0.1


@dataclass
class DriverPeaks:
    """Largest resident set sizes so far, in bytes; those of the workers are summed at each moment."""

    driver: int = 0
    jvm: int = 0
    workers: int = 0


@contextmanager
def sampled_driver(pid: int) -> Iterator[DriverPeaks]:
    """Sample the memory of the driver ``pid``, whose JVM is its child, at least once, until the body ends."""
    peaks, ended = DriverPeaks(), threading.Event()

    def sample() -> None:
        while True:
            _add(pid, peaks)
            if ended.wait(_INTERVAL_SECONDS):
                return

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield peaks
    finally:
        ended.set()
        sampler.join()


def _add(pid: int, peaks: DriverPeaks) -> None:
    driver = psutil.Process(pid)
    jvm = workers = 0
    for each in driver.children(recursive=True):
        try:
            size, name = each.memory_info().rss, each.name()
        except psutil.NoSuchProcess:
            continue
        if name.startswith("java"):
            jvm += size
        else:
            workers += size
    peaks.driver = max(peaks.driver, driver.memory_info().rss)
    peaks.jvm = max(peaks.jvm, jvm)
    peaks.workers = max(peaks.workers, workers)
