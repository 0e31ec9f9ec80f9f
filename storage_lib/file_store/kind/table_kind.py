"""What differs between kinds of tables inside one bucket: how rows are laid out, written, read and compacted.

    primary key                 merge_tree/key_value_table.py    versions of a key become one row
    none                        value_count/value_count_table.py rows are counted
    none, and append-only       append/append_table.py           rows are only added

Everything else (commits, snapshots, manifests, expiry, pruning by partition and bucket) is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.file_layout import FileLayout
from storage_lib.file_store.kind.file_grouping import FileGrouping
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.merge_keys import Indices
from storage_lib.format.file_format import FileFormat
from storage_lib.schema.filter.predicate import Predicate


class BucketWriter(Protocol):
    """The write side of one bucket. One thread at a time; several buckets' writers run side by side."""

    @property
    def memtable_bytes(self) -> int:
        """Bytes held in memory."""

    def write(self, rows: pa.RecordBatch, kinds: pa.Int8Array, rows_selected: Indices | None = None) -> None:
        """Take all rows, or only the selected ones in that order.

        Raises ``InvalidInputError`` for a null in a NOT NULL column or a kind that the table can't store; nothing is
        taken then.
        """

    def flush(self) -> None:
        """Turn what is in memory into files."""

    def prepare_commit(self) -> Increment:
        """Flush, and hand over all files since the last call. They are durable once ``take_unsynced`` is synced."""

    def take_unsynced(self) -> list[str]:
        """Paths to make durable before the commit."""

    def abort(self) -> None:
        """Forget the rows in memory and delete the files that were not handed over yet."""


class BucketCompactor(Protocol):
    """Carries out compactions of one bucket."""

    def compact(self, unit: CompactionUnit) -> Increment:
        """Replace the unit's files; empty if they may stay. On an error nothing stays behind."""

    def take_unsynced(self) -> list[str]:
        """Paths to make durable before the commit."""


class TableKind(FileGrouping, Protocol):
    """One kind of table, with the numbers of one table. Holds no state, so threads may share it."""

    @property
    def layout(self) -> FileLayout:
        """The columns of its data files."""

    @property
    def comparable_key(self) -> Callable[[bytes], ComparableKey] | None:
        """How serialized keys compare, where no two files of a level from 1 on may share one; None: they may."""

    def file_format(self, inner: FileFormat) -> FileFormat:
        """The format as this kind of table names its files."""

    def writer(self, data_files: DataFileWriter, *, next_sequence: int) -> BucketWriter:
        """Appends to a bucket; ``next_sequence`` is above the bucket's highest at the writer's base snapshot."""

    def overwriter(self, data_files: DataFileWriter, reader: DataFileReader) -> BucketWriter:
        """Create a writer that overwrites a bucket; its rows are older than rows appended afterwards."""

    def read(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
        ordered: bool,
    ) -> Iterator[pa.RecordBatch]:
        """The rows that ``files`` add up to and that match, as non-empty batches of ``columns`` in the order asked.

        ``ordered`` sorts them by key, where there is one.
        """

    def changes(
        self, files: Sequence[DataFileMeta], reader: DataFileReader
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Rows (table columns) and kinds (int8) that were written into ``files``, file after file."""

    def compaction_units(self, files: Sequence[DataFileMeta], *, full: bool) -> Sequence[CompactionUnit]:
        """What to compact in a bucket of these files: what is due, or with ``full`` all that can be."""

    def compactor(self, data_files: DataFileWriter, reader: DataFileReader) -> BucketCompactor:
        """For one bucket."""
