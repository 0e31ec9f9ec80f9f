"""Wrongly set clock: its time of day is shifted, its monotonic time is correct."""

from __future__ import annotations

from storage_lib.io.environment import Environment, SystemClock, system_environment


class MovedClock(SystemClock):
    """This machine's clock, ``by_seconds`` ahead (negative: behind)."""

    def __init__(self, by_seconds: float) -> None:
        self._by_millis = round(by_seconds * 1000)

    def now_millis(self) -> int:
        """Return the shifted time in epoch milliseconds."""
        return super().now_millis() + self._by_millis


def moved_environment(by_seconds: float) -> Environment:
    """Return this machine's environment with such a clock."""
    plain = system_environment()
    return Environment(file_io=plain.file_io, clock=MovedClock(by_seconds), new_name=plain.new_name)
