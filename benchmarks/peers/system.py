"""Interface of a measured system. Each operation is complete: a new process can read what it has written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from benchmarks.peers.workload import Totals


class NotOffered(Exception):  # noqa: N818  not an error: a gap in a table of figures
    """The system has no such verb."""


class System(Protocol):
    """One table in one directory. Verbs that a system lacks raise ``NotOffered``."""

    def create(self, *, partitioned: bool = False) -> None:
        """Make the table: key ``id``, or partitioned by ``dt`` with key (``dt``, ``id``)."""

    def open(self) -> None:
        """Forget everything and open the table that is there."""

    def upsert(self, rows: pa.Table) -> None:
        """One commit."""

    def scan(self) -> Totals:
        """Read every row."""

    def filter(self) -> int:
        """How many rows have a score above ``FILTER_ABOVE``, their names read."""

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """The names of those ids, in order of id."""

    def compact(self) -> None:
        """Merge everything into as few files as it may be."""

    def count_day(self, day: str) -> int:
        """How many rows a partition has."""
