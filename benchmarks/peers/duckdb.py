"""DuckDB's native table with its primary key index: a database in one file, for one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peers.system import NotOffered
from benchmarks.peers.workload import FILTER_ABOVE, Totals, newest_of_each_key


class DuckDb:
    """A DuckDB table; every upsert is its own transaction, synced as DuckDB does by default."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = str(directory / "table.duckdb")
        self._opened: Any = None

    def create(self, *, partitioned: bool = False) -> None:
        """Create the table with the same key; DuckDB has no partitions."""
        key = "dt, id" if partitioned else "id"
        self._connection.execute(
            "CREATE TABLE t (id BIGINT, dt VARCHAR, name VARCHAR, amount DECIMAL(12, 2), score DOUBLE, ts TIMESTAMP, "
            f"PRIMARY KEY ({key}))"
        )

    def open(self) -> None:
        """Close the file; the next operation opens it again."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def upsert(self, rows: pa.Table) -> None:
        """INSERT OR REPLACE the newest row of each key, because a statement may contain a key only once."""
        newest = newest_of_each_key([rows])
        connection = self._connection
        connection.register("newest", newest)
        connection.execute("INSERT OR REPLACE INTO t SELECT * FROM newest")
        connection.unregister("newest")

    def scan(self) -> Totals:
        """Scan with SQL."""
        count, amount, score, letters, newest = self._connection.execute(
            "SELECT count(*), sum(amount), sum(score), sum(length(name)), max(ts) FROM t"
        ).fetchone()
        return Totals(count=count, amount=amount, score=score, letters=int(letters), newest=newest)

    def filter(self) -> int:
        """Filter with SQL."""
        query = f"SELECT name FROM t WHERE score > {FILTER_ABOVE}"  # noqa: S608  our constant
        return int(self._connection.execute(query).to_arrow_table().num_rows)

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Look the ids up with SQL."""
        query = f"SELECT name FROM t WHERE id IN ({', '.join(str(each) for each in ids)}) ORDER BY id"  # noqa: S608
        return [name for (name,) in self._connection.execute(query).fetchall()]

    def compact(self) -> None:
        """Raise ``NotOffered``: there is nothing to merge."""
        raise NotOffered

    def count_day(self, day: str) -> int:
        """Count the rows of a day with SQL."""
        return int(self._connection.execute("SELECT count(*) FROM t WHERE dt = ?", [day]).fetchone()[0])

    @property
    def _connection(self) -> Any:
        import duckdb  # noqa: PLC0415  optional

        if self._opened is None:
            self._opened = duckdb.connect(self._path)
            self._opened.execute("SET threads = 2")
        return self._opened
