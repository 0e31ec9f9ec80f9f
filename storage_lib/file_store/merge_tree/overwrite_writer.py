"""Write path of one bucket under INSERT OVERWRITE: one sorted run at the top level, every row with sequence 0.

So every later commit is newer, and ties are impossible: the run has one version per key and no deletions.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.memtable import Memtable
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction, without_retracts
from storage_lib.file_store.merge_tree.merge_keys import Indices
from storage_lib.file_store.merge_tree.merge_tree_reader import read_merged

SPILL_LEVEL = 0


class OverwriteWriter:
    """Writer that overwrites one bucket. Not thread-safe; accepts rows as ``MergeTreeWriter`` does.

    Rows that fit into the memtable are written once. Otherwise they are spilled to sorted files, which are merged at
    the end and then deleted.
    """

    def __init__(
        self,
        *,
        key_value: KeyValueSchema,
        data_files: DataFileWriter,
        reader: DataFileReader,
        top_level: int,
        memtable_bytes_max: int,
        merge_function: MergeFunction = DEDUPLICATE,
    ) -> None:
        self._merge_function = merge_function
        self._key_value = key_value
        self._data_files = data_files
        self._reader = reader
        self._top_level = top_level
        self._memtable = Memtable(key_value, merge_function)
        self._memtable_bytes_max = memtable_bytes_max
        self._arrived = 0
        self._spilled: list[DataFileMeta] = []

    @property
    def memtable_bytes(self) -> int:
        """Size of the memtable, in bytes."""
        return self._memtable.size_bytes

    def write(self, rows: pa.RecordBatch, kinds: pa.Int8Array, rows_selected: Indices | None = None) -> None:
        """Add all rows, or only the selected ones in that order; rows with one key are merged."""
        self._arrived += self._memtable.put(rows, kinds, self._arrived, rows_selected)
        if self._memtable.size_bytes >= self._memtable_bytes_max:
            self.flush()

    def flush(self) -> None:
        """Spill the memtable to a file."""
        for rows in self._memtable.drain():
            self._spilled += self._data_files.write([rows], level=SPILL_LEVEL)

    def prepare_commit(self) -> Increment:
        """Return the run. It is durable once ``take_unsynced`` is synced."""
        if self._spilled:
            self.flush()
        rows = self._merged_spill() if self._spilled else self._from_memory()
        new_files = self._data_files.write(map(_with_sequence_zero, rows), level=self._top_level)
        self._delete_spilled()
        self._arrived = 0
        return Increment(new_files=tuple(new_files))

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""
        return self._data_files.take_unsynced()

    def abort(self) -> None:
        """Discard the rows in memory, and delete spilled files."""
        self._memtable.clear()
        self._delete_spilled()

    def _from_memory(self) -> Iterator[pa.RecordBatch]:
        for rows in self._memtable.drain(final=True):
            yield without_retracts(rows, rows.column(VALUE_KIND))

    def _merged_spill(self) -> Iterator[pa.RecordBatch]:
        return read_merged(
            self._spilled,
            reader=self._reader,
            key_value=self._key_value,
            merge_function=self._merge_function,
            columns=self._key_value.value_names,
            with_kv=True,
            ordered=True,
        )

    def _delete_spilled(self) -> None:
        spilled, self._spilled = self._spilled, []
        self._data_files.delete(spilled)


def _with_sequence_zero(rows: pa.RecordBatch) -> pa.RecordBatch:
    index = rows.schema.get_field_index(SEQUENCE_NUMBER)
    return rows.set_column(index, rows.schema.field(index), pa.array(np.zeros(rows.num_rows, dtype=np.int64)))
