"""A clock that is set wrong: its time of day is moved, its seconds pass as they do everywhere."""

from __future__ import annotations

from storage_lib.io.environment import Environment, SystemClock, system_environment


class MovedClock(SystemClock):
    """This machine's clock, ``by_seconds`` ahead (or, below 0, behind)."""

    def __init__(self, by_seconds: float) -> None:
        self._by_millis = round(by_seconds * 1000)

    def now_millis(self) -> int:
        """Epoch milliseconds, wrong."""
        return super().now_millis() + self._by_millis


def moved_environment(by_seconds: float) -> Environment:
    """This machine, with such a clock."""
    plain = system_environment()
    return Environment(file_io=plain.file_io, clock=MovedClock(by_seconds), new_name=plain.new_name)
