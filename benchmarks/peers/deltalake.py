"""deltalake (delta-rs): copy on write in Rust. It has no primary key, so an upsert is a MERGE on the key columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.peers.workload import FILTER_ABOVE, SCANNED, SCHEMA, Totals, newest_of_each_key, totals_of

_TRIES = 100


class DeltaLake:
    """A Delta table. The first upsert is a plain append, the usual way to load such a table."""

    def __init__(self, directory: Path) -> None:
        self._path = str(directory / "delta")
        self._opened: Any = None

    def create(self, *, partitioned: bool = False) -> None:
        """Create the table, without a key."""
        from deltalake import DeltaTable  # noqa: PLC0415  optional

        DeltaTable.create(self._path, SCHEMA, partition_by=["dt"] if partitioned else None)

    def open(self) -> None:
        """Reload the table at the next operation."""
        self._opened = None

    def upsert(self, rows: pa.Table) -> None:
        """Merge the newest row of each key, as MERGE requires unique keys; append if the table is empty."""
        from deltalake import write_deltalake  # noqa: PLC0415
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        table = self._table
        if table.version() == 0:
            write_deltalake(table, rows, mode="append")
            return

        newest = newest_of_each_key([rows])
        for attempt in range(_TRIES):
            merge = self._table.merge(
                newest, predicate="t.id = s.id AND t.dt = s.dt", source_alias="s", target_alias="t"
            )
            try:
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            except CommitFailedError:
                # Another writer committed first, so the merge has to be computed again.
                if attempt == _TRIES - 1:
                    raise
                self.open()
            else:
                return

    def scan(self) -> Totals:
        """Scan with pyarrow's dataset reader."""
        return totals_of(self._dataset().to_table(columns=list(SCANNED)))

    def filter(self) -> int:
        """Filter with pyarrow's dataset reader, which pushes the filter down."""
        import pyarrow.dataset as ds  # noqa: PLC0415

        return int(self._dataset().to_table(columns=["name"], filter=ds.field("score") > FILTER_ABOVE).num_rows)

    def look_up(self, ids: Sequence[int]) -> list[str]:
        """Look the ids up with pyarrow's dataset reader, which pushes the filter down."""
        import pyarrow.dataset as ds  # noqa: PLC0415

        rows = self._dataset().to_table(columns=["id", "name"], filter=ds.field("id").isin(list(ids)))
        return list(rows.sort_by("id")["name"].to_pylist())

    def compact(self) -> None:
        """Rewrite small files into larger ones; there is nothing to merge."""
        self._table.optimize.compact()

    def count_day(self, day: str) -> int:
        """Count the rows of one partition."""
        import pyarrow.dataset as ds  # noqa: PLC0415

        return int(self._dataset().count_rows(filter=ds.field("dt") == day))

    @property
    def _table(self) -> Any:
        from deltalake import DeltaTable  # noqa: PLC0415

        if self._opened is None:
            self._opened = DeltaTable(self._path)
        return self._opened

    def _dataset(self) -> Any:
        return self._table.to_pyarrow_dataset()
