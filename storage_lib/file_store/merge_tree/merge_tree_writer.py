"""Write path of one bucket: memtable, flushes, and their files at a commit.

Rows get sequence numbers as they arrive; a full memtable is flushed to a file of level 0.
"""

from __future__ import annotations

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.memtable import Memtable
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_keys import Indices

FRESH_LEVEL = 0


class MergeTreeWriter:
    """Appends to one bucket. Not thread-safe; writers of several buckets may run in parallel."""

    def __init__(
        self,
        *,
        key_value: KeyValueSchema,
        data_files: DataFileWriter,
        next_sequence: int,
        memtable_bytes_max: int,
        merge_function: MergeFunction = DEDUPLICATE,
        with_changelog: bool = False,
    ) -> None:
        """``next_sequence`` must be above the bucket's highest sequence number at the writer's base snapshot.

        ``with_changelog``: all rows are also written to changelog files, unmerged.
        """
        self._data_files = data_files
        self._memtable = Memtable(key_value, merge_function)
        self._input = Memtable(key_value) if with_changelog else None
        self._memtable_bytes_max = memtable_bytes_max
        self._next_sequence = next_sequence
        self._new_files: list[DataFileMeta] = []
        self._new_changelog: list[DataFileMeta] = []

    @property
    def next_sequence(self) -> int:
        """Sequence number of the next row."""
        return self._next_sequence

    @property
    def memtable_bytes(self) -> int:
        """Size of the memtable, in bytes."""
        return self._memtable.size_bytes

    def write(self, rows: pa.RecordBatch, kinds: pa.Int8Array, rows_selected: Indices | None = None) -> None:
        """Add all rows, or only the selected ones in that order (which saves the caller a copy).

        Raises ``InvalidInputError`` for a null in a NOT NULL column, or for a kind of change that the merge function
        can't merge; no row is added then.
        """
        taken = self._memtable.put(rows, kinds, self._next_sequence, rows_selected)
        if self._input is not None:
            taken = max(taken, self._input.put(rows, kinds, self._next_sequence, rows_selected))
        self._next_sequence += taken
        if self._memtable.size_bytes >= self._memtable_bytes_max:
            self.flush()

    def flush(self) -> None:
        """Flush the memtable to files of level 0."""
        if self._input is not None:
            changelog = self._data_files.changelog(level=FRESH_LEVEL)
            try:
                changelog.add(self._input.drain_all())
                self._new_changelog += changelog.close()
            except BaseException:
                changelog.abandon()
                raise
        for rows in self._memtable.drain():
            self._new_files += self._data_files.write([rows], level=FRESH_LEVEL)

    def prepare_commit(self) -> Increment:
        """Flush, and return all files since the last call. They are durable once ``take_unsynced`` is synced."""
        self.flush()
        new_files, self._new_files = self._new_files, []
        new_changelog, self._new_changelog = self._new_changelog, []
        return Increment(new_files=tuple(new_files), new_changelog=tuple(new_changelog))

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""
        return self._data_files.take_unsynced()

    def abort(self) -> None:
        """Discard the rows in memory, and delete all files that have not been returned."""
        self._memtable.clear()
        if self._input is not None:
            self._input.clear()
        new_files, self._new_files = [*self._new_files, *self._new_changelog], []
        self._new_changelog = []
        self._data_files.delete(new_files)
