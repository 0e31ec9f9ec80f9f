"""Write path of one bucket of an append table: rows are buffered in memory and written in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.append.append_layout import AppendLayout
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.memtable import refuse_nulls
from storage_lib.file_store.merge_tree.merge_keys import Indices

APPEND_LEVEL = 0
"""The only level of append tables (docs/format.md)."""


class AppendWriter:
    """Appends to one bucket or overwrites it. Not thread-safe."""

    def __init__(
        self, *, layout: AppendLayout, data_files: DataFileWriter, next_sequence: int, memtable_bytes_max: int
    ) -> None:
        self._layout = layout
        self._data_files = data_files
        self._next_sequence = next_sequence
        self._memtable_bytes_max = memtable_bytes_max
        self._batches: list[pa.RecordBatch] = []
        self._memtable_bytes = 0
        self._new_files: list[DataFileMeta] = []

    @property
    def memtable_bytes(self) -> int:
        """Size of the buffered rows, in bytes."""
        return self._memtable_bytes

    def write(self, rows: pa.RecordBatch, kinds: pa.Int8Array, rows_selected: Indices | None = None) -> None:
        """Add all rows, or only the selected ones in that order.

        Raises ``InvalidInputError`` for a null in a NOT NULL column and for any kind other than insert; no row is added
        then.
        """
        refuse_nulls(rows, self._layout.schema)
        if pc.any(pc.not_equal(kinds, 0)).as_py():
            message = "an append-only table takes inserts (+I) only; leave updates and deletions out"
            raise InvalidInputError(message)
        taken = rows if rows_selected is None else rows.take(pa.array(rows_selected))
        if not taken.num_rows:
            return
        self._batches.append(taken)
        self._memtable_bytes += taken.nbytes
        if self._memtable_bytes >= self._memtable_bytes_max:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows to files."""
        self._new_files += self._data_files.write(self._drained(), level=APPEND_LEVEL)

    def prepare_commit(self) -> Increment:
        """Flush, and return all files since the last call. They are durable once ``take_unsynced`` is synced."""
        self.flush()
        new_files, self._new_files = self._new_files, []
        return Increment(new_files=tuple(new_files))

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""
        return self._data_files.take_unsynced()

    def abort(self) -> None:
        """Discard the rows in memory, and delete all files that have not been returned."""
        self._batches, self._memtable_bytes = [], 0
        new_files, self._new_files = self._new_files, []
        self._data_files.delete(new_files)

    def _drained(self) -> Iterator[pa.RecordBatch]:
        batches, self._batches, self._memtable_bytes = self._batches, [], 0
        for batch in batches:
            yield self._layout.numbered(batch, self._next_sequence)
            self._next_sequence += batch.num_rows
