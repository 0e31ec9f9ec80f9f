"""Peak memory of a driver by kind of process: its Python, its JVM, and the Python workers of its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from benchmarks.spark_engine.memory_peak import repeated


@dataclass
class DriverPeaks:
    """Largest resident set sizes so far, in bytes; those of the workers are summed at each moment."""

    driver: int = 0
    jvm: int = 0
    workers: int = 0


@contextmanager
def sampled_driver(pid: int) -> Iterator[DriverPeaks]:
    """Sample the memory of the driver ``pid``, whose JVM is its child, at least once, until the body ends."""
    peaks = DriverPeaks()
    with repeated(lambda: _add(pid, peaks)):
        yield peaks


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
