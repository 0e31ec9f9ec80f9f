"""Pre-images: the rows that a task's changes replace or delete, looked up by key.

They are read from the snapshot that the write is based on and from the files that the task has flushed since. No other
task writes rows of the same buckets, so nothing else can have changed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from storage_lib.errors import CommitConflictError, SnapshotExpiredError
from storage_lib.table.changes.comparable_frame import comparable_frame

if TYPE_CHECKING:
    from storage_lib.file_store.commit_message import CommitMessage
    from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.table.read.point_lookup import PointLookup

_INDEX = "index"


class PreImages:
    """Looks up the rows before the changes that one task has not flushed yet. Not thread-safe."""

    def __init__(self, *, table: str, lookup: PointLookup, primary_keys: Sequence[str], base: Snapshot | None) -> None:
        self._table = table
        self._lookup = lookup
        self._primary_keys = list(primary_keys)
        self._base = base
        self._flushed: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        self._cached: tuple[pl.DataFrame, pa.Table] | None = None

    def advance(self, flushed: Sequence[CommitMessage]) -> None:
        """Include all files that the task has flushed so far; drops the rows that ``of`` kept."""
        self._flushed = {}
        for each in flushed:
            self._flushed.setdefault((each.partition, each.bucket), []).extend(each.increment.new_files)
        self._cached = None

    def of(self, keys: pa.Table, *, keep: bool = False) -> pa.Table:
        """Return whole rows of ``keys`` (primary key columns, repetitions allowed), in any order, at most one per key.

        ``keep`` caches them in memory until ``advance``, so that the same keys are not read again. Raises
        ``CommitConflictError`` if the base snapshot expired meanwhile.
        """
        keys = keys.select(self._primary_keys)
        asked = comparable_frame(keys)
        if self._cached is None:
            found = self._look_up(keys)
        else:
            known, rows = self._cached
            names = known.columns
            is_asked = comparable_frame(rows.select(self._primary_keys)).with_row_index(_INDEX)
            is_new = asked.with_row_index(_INDEX).join(known, on=names, how="anti")[_INDEX]
            reused = rows.take(is_asked.join(asked, on=names, how="semi")[_INDEX].to_arrow())
            found = pa.concat_tables([reused, self._look_up(keys.take(is_new.to_arrow()))]) if len(is_new) else reused
        if keep:
            self._cached = asked.unique(), found
        return found

    def _look_up(self, keys: pa.Table) -> pa.Table:
        try:
            return self._lookup.rows_of(self._base, keys, added=self._flushed)
        except SnapshotExpiredError as error:
            message = (
                f"table {self._table}: the snapshot that this write is based on expired while the rows that it "
                f"replaces were looked up ({error}). Nothing became visible; write again, and keep snapshots for "
                "longer than a write takes (expire_snapshots(older_than_millis=...))"
            )
            raise CommitConflictError(message) from error
