"""This project's library; by default every commit is synced to disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from benchmarks.peers.workload import BUCKETS, FILTER_ABOVE, SCANNED, SCHEMA, Totals, totals_of
from storage_lib import DynamicTable, RetryableError, WarehouseCatalog, col
from storage_lib.io.environment import system_environment
from storage_lib.io.local.local_file_io import LocalFileIO

NAME = "db.t"
_TRIES = 100


class Ours:
    """A table of this library; ``durable=False`` omits every fsync, as the peers do."""

    def __init__(self, directory: Path, *, durable: bool) -> None:
        environment = system_environment(LocalFileIO(durable=durable))
        self._catalog = WarehouseCatalog(str(directory), environment=environment)
        self._table: DynamicTable | None = None

    @property
    def table(self) -> DynamicTable:
        """The table, opened on first use."""
        if self._table is None:
            self._table = self._catalog.load_table(NAME)
        return self._table

    def create(self, *, partitioned: bool = False) -> None:
        """Create the table with four buckets, or with one bucket in each partition."""
        self._table = self._catalog.create_table(
            NAME,
            SCHEMA,
            primary_key=["dt", "id"] if partitioned else ["id"],
            partition_by=["dt"] if partitioned else [],
            options={"bucket": "1" if partitioned else str(BUCKETS), "write-only": "true"},
        )

    def open(self) -> None:
        """Reload the table at the next operation."""
        self._table = None

    def upsert(self, rows: pa.Table) -> None:
        """Append the rows, which upserts them in a table with a key. Retries after conflicts, as a DAG does."""
        for attempt in range(_TRIES):
            try:
                self.table.append(rows)
            except RetryableError:
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    def scan(self) -> Totals:
        """Read all rows."""
        return totals_of(self.table.to_arrow(columns=list(SCANNED)))

    def filter(self) -> int:
        """Filter with a predicate."""
        return int(self.table.to_arrow(columns=["name"], filter=col("score") > FILTER_ABOVE).num_rows)

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Look the ids up by primary key."""
        rows = self.table.lookup([{"id": each} for each in sorted(ids)], columns=["id", "name"])
        return list(rows.sort_by("id")["name"].to_pylist())

    def compact(self) -> None:
        """Run a full compaction."""
        self.table.compact()

    def count_day(self, day: str) -> int:
        """Count the rows of one partition."""
        return int(self.table.to_arrow(columns=["id"], filter=col("dt") == day).num_rows)
