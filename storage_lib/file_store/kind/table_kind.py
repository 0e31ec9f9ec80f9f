"""Differences between kinds of tables within one bucket: how rows are laid out, written, read and compacted.

    primary key                 merge_tree/key_value_table.py    versions of a key are merged
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
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.kind.file_grouping import FileGrouping
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.merge_keys import Indices
from storage_lib.format.file_format import FileFormat
from storage_lib.schema.filter.predicate import Predicate


class BucketWriter(Protocol):
    """Writer of one bucket. Not thread-safe; writers of several buckets may run in parallel."""

    @property
    def memtable_bytes(self) -> int:
        """Size of the buffered rows, in bytes."""

    def write(self, rows: pa.RecordBatch, kinds: pa.Int8Array, rows_selected: Indices | None = None) -> None:
        """Add all rows, or only the selected ones in that order.

        Raises ``InvalidInputError`` for a null in a NOT NULL column or a kind that the table can't store; no row is
        added then.
        """

    def flush(self) -> None:
        """Write the buffered rows to files."""

    def prepare_commit(self) -> Increment:
        """Flush, and return all files since the last call. They are durable once ``take_unsynced`` is synced."""

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""

    def abort(self) -> None:
        """Discard the rows in memory, and delete all files that have not been returned."""


class BucketCompactor(Protocol):
    """Runs compactions of one bucket."""

    def compact(self, unit: CompactionUnit) -> Increment:
        """Replace the unit's files; empty if no file has to change. After an error, no file is left."""

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""


class TableKind(FileGrouping, Protocol):
    """Kind of one table, with its options. Stateless, so threads may share it."""

    @property
    def layout(self) -> FileLayout:
        """Columns of its data files."""

    @property
    def comparable_key(self) -> Callable[[bytes], ComparableKey] | None:
        """Order of serialized keys if no two files of a level from 1 on may share one; None if they may."""

    def file_format(self, inner: FileFormat) -> FileFormat:
        """Return the format with the file extension of this kind of table."""

    def writer(self, data_files: DataFileWriter, *, next_sequence: int) -> BucketWriter:
        """Create a writer that appends; ``next_sequence`` is above the bucket's highest at its base snapshot."""

    def overwriter(
        self, data_files: DataFileWriter, reader: DataFileReader, *, stored_rows: bool = False
    ) -> BucketWriter:
        """Create a writer that overwrites a bucket; its rows are older than rows appended afterwards.

        ``stored_rows``: they were read from the table, each key once.
        """

    def read(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
        ordered: bool,
        key_range: KeyRange | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the merged, matching rows of ``files``, as non-empty batches of ``columns`` in the given order.

        ``ordered`` sorts them by key, if the table has one. ``key_range`` restricts them to some keys; it is None if
        ``comparable_key`` is None.
        """

    def changes(
        self, files: Sequence[DataFileMeta], reader: DataFileReader
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the rows (table columns) and kinds (int8) stored in ``files``, file after file."""

    def compaction_units(self, files: Sequence[DataFileMeta], *, full: bool) -> Sequence[CompactionUnit]:
        """Return the compactions that are due for a bucket of these files; with ``full`` all possible ones."""

    def compactor(self, data_files: DataFileWriter, reader: DataFileReader) -> BucketCompactor:
        """Create a compactor of one bucket."""
