"""Figures of all rounds, by work and system, and their records in the results."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass
class _Figures:
    seconds: list[float] = field(default_factory=list)
    python_bytes: list[int] = field(default_factory=list)
    peak_bytes: int = 0


@dataclass
class Measurements:
    """Collects figures; works keep the order in which they were first measured."""

    rows: int
    machine: str
    releases: dict[str, str] = field(default_factory=dict)
    _figures: defaultdict[tuple[str, str], _Figures] = field(default_factory=lambda: defaultdict(_Figures))

    def add(self, work: str, system: str, *, seconds: float, python_bytes: int, peak_bytes: int) -> None:
        """Add one run of a work."""
        figures = self._figures[work, system]
        figures.seconds.append(seconds)
        figures.python_bytes.append(python_bytes)
        figures.peak_bytes = max(figures.peak_bytes, peak_bytes)

    def records(self) -> list[dict[str, Any]]:
        """Return a record per work and system: medians over its runs, and the largest memory."""
        return [
            {
                "rows": self.rows,
                "work": work,
                "system": system,
                "seconds_median": round(statistics.median(figures.seconds), 4),
                "seconds_min": round(min(figures.seconds), 4),
                "runs": len(figures.seconds),
                "python_bytes": round(statistics.median(figures.python_bytes)),
                "peak_memory_bytes": figures.peak_bytes,
                "spark": self.releases.get(system.partition(",")[0], ""),
                "machine": self.machine,
            }
            for (work, system), figures in self._figures.items()
        ]
