"""TPC-H's tables as Parquet files, to which DuckDB applies the refresh functions: input of the full computation."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.tpch_work.tpch_tables import KEYS


class ParquetCopies:
    """A file for each table. A changed table is written as a new file; the old one is deleted."""

    def __init__(self, loaded: Path, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.files = {name: loaded / f"{name}.parquet" for name in KEYS}
        self._versions = dict.fromkeys(KEYS, 0)

    def insert(self, name: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        self._rewrite(name, "SELECT * FROM {file} UNION ALL BY NAME SELECT * FROM given", rows)

    def delete(self, name: str, column: str, keys: pa.Array) -> None:
        """Delete the rows of a table whose ``column`` is among the keys."""
        rows = pa.table({"given_key": keys})
        self._rewrite(name, f"SELECT * FROM {{file}} WHERE {column} NOT IN (SELECT given_key FROM given)", rows)

    def _rewrite(self, name: str, text: str, given: pa.Table) -> None:
        old = self.files[name]
        self._versions[name] += 1
        new = self._directory / f"{name}-{self._versions[name]}.parquet"
        with duckdb.connect(config={"memory_limit": "2GB", "threads": 2}) as database:
            database.register("given", given)
            database.execute(f"COPY ({text.format(file=repr(str(old)))}) TO '{new}' (FORMAT parquet)")
        if old.parent == self._directory:
            old.unlink()
        self.files[name] = new
