"""Interface of a measured system. When an operation returns, a new process can read its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from benchmarks.peers.workload import Totals


class NotOffered(Exception):  # noqa: N818  not an error: an empty cell in the table of figures
    """The system does not have this operation."""


class System(Protocol):
    """One table in one directory. Operations that a system lacks raise ``NotOffered``."""

    def create(self, *, partitioned: bool = False) -> None:
        """Create the table with key ``id``, or partitioned by ``dt`` with key (``dt``, ``id``)."""

    def open(self) -> None:
        """Discard all caches and open the existing table."""

    def upsert(self, rows: pa.Table) -> None:
        """Upsert the rows in one commit."""

    def scan(self) -> Totals:
        """Read every row."""

    def filter(self) -> int:
        """Read the names of rows with a score above ``FILTER_ABOVE``, and return their number."""

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Return the names of those ids, in order of id."""

    def compact(self) -> None:
        """Merge all files into as few as possible."""

    def count_day(self, day: str) -> int:
        """Return the number of rows of a partition."""
