"""What refreshes of a table took lately, by which ``REFRESH_MODE = AUTO`` chooses between its two ways.

Times depend on the machine and its load, so they are those that this process has measured, of a table's present query:
the shortest of the last few. Small tables are not compared: their times are those of starting Spark's jobs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from storage_lib.materialized.plan.refresh_result import RefreshWork

ROWS_MIN = 10_000
"""Rows of the sources from which on times are compared."""

_TABLES_MAX = 1_000
_WAYS = (RefreshWork.FULL, RefreshWork.INCREMENTAL)
_TIMES = 3
_APPLIED_MIN = 2
_FASTER_BY = 1.2
_AGAIN_AFTER = 20
_WORTH_A_CHANCE = 3
_FAST_SECONDS = 0.5
"""Changes that are applied in less time are applied: a whole answer may take far longer once a table has grown."""


@dataclass(frozen=True, slots=True)
class RefreshSize:
    """Rows that changed in the sources, and rows in their files."""

    changed: int
    stored: int


@dataclass(frozen=True, slots=True)
class _Time:
    seconds: float
    rows: int


@dataclass(slots=True)
class _Way:
    """The last times of one way. ``others`` counts refreshes the other way since then."""

    times: deque[_Time] = field(default_factory=lambda: deque(maxlen=_TIMES))
    others: int = 0
    due_after: int = _AGAIN_AFTER

    @property
    def is_due(self) -> bool:
        """Whether this way gets another chance: the last times may be those of a cold process or a busy machine."""
        return self.others >= self.due_after

    def add(self, time: _Time) -> None:
        """Add a time. Each chance makes the next one rarer."""
        if self.is_due:
            self.due_after *= 2
        self.times.append(time)
        self.others = 0

    def skip(self) -> None:
        """Count a refresh the other way."""
        self.others += 1


@dataclass(slots=True)
class _Times:
    """Of one query."""

    by: dict[RefreshWork, _Way] = field(default_factory=lambda: {work: _Way() for work in _WAYS})

    def add(self, work: RefreshWork, time: _Time) -> None:
        """Add the time of a refresh."""
        for each, way in self.by.items():
            if each is work:
                way.add(time)
            else:
                way.skip()

    def expected(self, work: RefreshWork, rows: int) -> float | None:
        """Return the seconds that a refresh of so many rows will take; None if none was measured."""
        known = self.by[work].times
        if not known or (work is RefreshWork.INCREMENTAL and len(known) < _APPLIED_MIN):
            return None
        # Fewer rows do not make a refresh shorter: most of a short one is spent starting jobs.
        return min(each.seconds * max(1.0, rows / max(1, each.rows)) for each in known)


class RefreshCosts:
    """Times of refreshes, by a table's query. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: OrderedDict[str, _Times] = OrderedDict()

    def record(self, query: str, work: RefreshWork, rows: int, seconds: float) -> None:
        """Remember what a refresh took that read so many rows. ``query`` names a table and its query."""
        with self._lock:
            times = self._times.setdefault(query, _Times())
            self._times.move_to_end(query)
            times.add(work, _Time(seconds, rows))
            if len(self._times) > _TABLES_MAX:
                self._times.popitem(last=False)

    def knows(self, query: str) -> bool:
        """Return whether both ways have been measured."""
        with self._lock:
            times = self._times.get(query)
            return times is not None and all(way.times for way in times.by.values())

    def why_full(self, query: str, size: RefreshSize) -> str | None:
        """Return why the whole query is to be computed; None if changes are to be applied.

        The way that is slower gets another chance from time to time, if it is not much slower.
        """
        if size.stored < ROWS_MIN:
            return None
        with self._lock:
            times = self._times.get(query)
            full = None if times is None else times.expected(RefreshWork.FULL, size.stored)
            applied = None if times is None else times.expected(RefreshWork.INCREMENTAL, size.changed)
            if times is None or full is None or applied is None or applied < _FAST_SECONDS:
                return None
            is_full_due = times.by[RefreshWork.FULL].is_due
            is_applied_due = times.by[RefreshWork.INCREMENTAL].is_due
        took = f"computing the query takes about {full:.1f} s, and applying changes {applied:.1f} s"
        if full * _FASTER_BY < applied:
            return None if is_applied_due else f"{took}; with REFRESH_MODE = INCREMENTAL, changes are applied"
        if is_full_due and full < applied * _WORTH_A_CHANCE:
            return f"{took}; the query is computed once to measure it again"
        return None


COSTS = RefreshCosts()
"""The times of this process."""
