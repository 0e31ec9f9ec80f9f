"""One Parquet file, written and read by pyarrow without key, commit or merge: the cost of the file format alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.peers.system import NotOffered
from benchmarks.peers.workload import FILTER_ABOVE, SCANNED, Totals, totals_of


class PlainParquet:
    """A Parquet file that can be written once and read."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "plain.parquet"

    def create(self, *, partitioned: bool = False) -> None:
        """Create the directory; raises ``NotOffered`` for partitions."""
        if partitioned:
            raise NotOffered
        self._path.parent.mkdir(parents=True, exist_ok=True)

    def open(self) -> None:
        """Do nothing, because no file is kept open."""

    def upsert(self, rows: pa.Table) -> None:
        """Write the file; raises ``NotOffered`` for a second write."""
        if self._path.exists():
            raise NotOffered
        pq.write_table(rows, self._path, compression="zstd")

    def scan(self) -> Totals:
        """Scan with pyarrow."""
        return totals_of(pq.read_table(self._path, columns=list(SCANNED)))

    def filter(self) -> int:
        """Filter with pyarrow."""
        return int(pq.read_table(self._path, columns=["name"], filters=pc.field("score") > FILTER_ABOVE).num_rows)

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Look the ids up with pyarrow's filter."""
        rows = pq.read_table(self._path, columns=["id", "name"], filters=pc.field("id").isin(list(ids)))
        return list(rows.sort_by("id")["name"].to_pylist())

    def compact(self) -> None:
        """Raise ``NotOffered``: there is nothing to merge."""
        raise NotOffered

    def count_day(self, day: str) -> int:
        """Count the rows of a day with pyarrow's filter."""
        return int(pq.read_table(self._path, columns=["id"], filters=pc.field("dt") == day).num_rows)
