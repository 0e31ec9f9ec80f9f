"""DuckDB's native table with its primary key index: a database in one file, for one process at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peers.system import NotOffered
from benchmarks.peers.workload import FILTER_ABOVE, Totals, newest_of_each_key


class DuckDb:
    """Every upsert is a transaction of its own, synced as DuckDB does it."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = str(directory / "table.duckdb")
        self._opened: Any = None

    def create(self, *, partitioned: bool = False) -> None:
        """It has no partitions; the key is the same."""
        key = "dt, id" if partitioned else "id"
        self._connection.execute(
            "CREATE TABLE t (id BIGINT, dt VARCHAR, name VARCHAR, amount DECIMAL(12, 2), score DOUBLE, ts TIMESTAMP, "
            f"PRIMARY KEY ({key}))"
        )

    def open(self) -> None:
        """Close the file and open it again."""
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def upsert(self, rows: pa.Table) -> None:
        """INSERT OR REPLACE of the newest row of each key, since it takes a key once a statement."""
        newest = newest_of_each_key([rows])
        connection = self._connection
        connection.register("newest", newest)
        connection.execute("INSERT OR REPLACE INTO t SELECT * FROM newest")
        connection.unregister("newest")

    def scan(self) -> Totals:
        """By SQL."""
        count, amount, score, letters, newest = self._connection.execute(
            "SELECT count(*), sum(amount), sum(score), sum(length(name)), max(ts) FROM t"
        ).fetchone()
        return Totals(count=count, amount=amount, score=score, letters=int(letters), newest=newest)

    def filter(self) -> int:
        """By SQL."""
        query = f"SELECT name FROM t WHERE score > {FILTER_ABOVE}"  # noqa: S608  a constant of ours
        return int(self._connection.execute(query).to_arrow_table().num_rows)

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """By SQL."""
        query = f"SELECT name FROM t WHERE id IN ({', '.join(str(each) for each in ids)}) ORDER BY id"  # noqa: S608
        return [name for (name,) in self._connection.execute(query).fetchall()]

    def compact(self) -> None:
        """Nothing to merge."""
        raise NotOffered

    def count_day(self, day: str) -> int:
        """By SQL."""
        return int(self._connection.execute("SELECT count(*) FROM t WHERE dt = ?", [day]).fetchone()[0])

    @property
    def _connection(self) -> Any:
        import duckdb  # noqa: PLC0415  optional

        if self._opened is None:
            self._opened = duckdb.connect(self._path)
            self._opened.execute("SET threads = 2")
        return self._opened
