"""pypaimon-rust: Paimon's own tables, written, merged and queried in Rust. It syncs nothing and cannot compact."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peers.ours import NAME, Ours
from benchmarks.peers.system import NotOffered
from benchmarks.peers.workload import FILTER_ABOVE, Totals


class PaimonRust:
    """A Paimon table that our catalog creates, since pypaimon-rust has the same format; all else is pypaimon-rust's."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._opened: tuple[Any, Any] | None = None

    def create(self, *, partitioned: bool = False) -> None:
        """Create the table with this library's catalog."""
        Ours(self._directory, durable=False).create(partitioned=partitioned)

    def open(self) -> None:
        """Drop the catalog and the SQL context; the next operation creates new ones."""
        self._opened = None

    def upsert(self, rows: pa.Table) -> None:
        """Write the rows in one batch commit."""
        builder = self._table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        for batch in rows.to_batches():
            write.write_arrow(batch)
        commit.commit(write.prepare_commit())

    def scan(self) -> Totals:
        """Scan with its SQL engine (DataFusion), which is faster than its Arrow read."""
        row = self._sql(
            "SELECT count(*) n, sum(amount) a, sum(score) s, sum(length(name)) l, max(ts) t FROM paimon.db.t"
        ).to_pylist()[0]
        return Totals(count=row["n"], amount=row["a"], score=row["s"], letters=row["l"], newest=row["t"])

    def filter(self) -> int:
        """Filter with SQL."""
        return int(self._sql(f"SELECT name FROM paimon.db.t WHERE score > {FILTER_ABOVE}").num_rows)  # noqa: S608  ours

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Look the ids up with SQL, which pushes the keys down to the scan."""
        listed = ", ".join(str(each) for each in ids)
        rows = self._sql(f"SELECT id, name FROM paimon.db.t WHERE id IN ({listed})")  # noqa: S608  integers of ours
        return list(rows.sort_by("id")["name"].to_pylist())

    def compact(self) -> None:
        """Raise ``NotOffered``: pypaimon-rust has no compaction."""
        raise NotOffered

    def count_day(self, day: str) -> int:
        """Count the rows of a day with SQL."""
        return int(self._sql(f"SELECT count(*) n FROM paimon.db.t WHERE dt = '{day}'")["n"][0].as_py())  # noqa: S608

    @property
    def _table(self) -> Any:
        return self._open()[0]

    def _sql(self, query: str) -> pa.Table:
        return pa.Table.from_batches(self._open()[1].sql(query))

    def _open(self) -> tuple[Any, Any]:
        from pypaimon_rust.datafusion import PaimonCatalog, SQLContext  # noqa: PLC0415  starts threads

        if self._opened is None:
            options = {"warehouse": str(self._directory)}
            context = SQLContext()
            context.register_catalog("paimon", options)
            self._opened = PaimonCatalog(options).get_table(NAME), context
        return self._opened
