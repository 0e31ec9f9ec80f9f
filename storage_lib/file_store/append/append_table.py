"""Kind of table that is append-only and has no primary key: a plain Paimon append table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.file_store.append.append_compaction import AppendCompactor, SmallFileCompaction
from storage_lib.file_store.append.append_layout import AppendLayout
from storage_lib.file_store.append.append_reader import in_append_order, read_appended
from storage_lib.file_store.append.append_writer import AppendWriter
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.format.file_format import FileFormat
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.types.row_kind import RowKind


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendTable:
    """A ``TableKind``. ``strategy`` chooses the files to compact."""

    layout: AppendLayout
    strategy: SmallFileCompaction
    memtable_bytes_max: int

    @property
    def comparable_key(self) -> None:
        """Return None: an append table has no keys."""
        return

    def file_format(self, inner: FileFormat) -> FileFormat:
        """Return the format unchanged."""
        return inner

    def writer(self, data_files: DataFileWriter, *, next_sequence: int) -> AppendWriter:
        """Return a writer that appends rows."""
        return AppendWriter(
            layout=self.layout,
            data_files=data_files,
            next_sequence=next_sequence,
            memtable_bytes_max=self.memtable_bytes_max,
        )

    def overwriter(
        self,
        data_files: DataFileWriter,
        reader: DataFileReader,  # noqa: ARG002  its files have no versions
        *,
        stored_rows: bool = False,  # noqa: ARG002  no merge
    ) -> AppendWriter:
        """Return a writer whose sequence numbers start at 0."""
        return self.writer(data_files, next_sequence=0)

    def read(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
        ordered: bool,  # noqa: ARG002  without a key, rows have no order
        key_range: KeyRange | None = None,  # noqa: ARG002  always None: see ``comparable_key``
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows as stored, in append order."""
        return read_appended(in_append_order(files), reader, columns=columns, predicate=predicate)

    def changes(
        self, files: Sequence[DataFileMeta], reader: DataFileReader
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield every row as an insert."""
        for rows in read_appended(files, reader, columns=self.layout.value_names):
            yield rows, pa.repeat(pa.scalar(int(RowKind.INSERT), pa.int8()), rows.num_rows)

    def groups(self, files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
        """Return each file as a group."""
        return [[file] for file in in_append_order(files)]

    def unmerged(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Return all files: rows are never merged."""
        return files

    def independent(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Return all files: no row hides another."""
        return files

    def compaction_units(self, files: Sequence[DataFileMeta], *, full: bool) -> list[CompactionUnit]:
        """Return groups of small files."""
        return self.strategy.pick(files, full=full)

    def compactor(self, data_files: DataFileWriter, reader: DataFileReader) -> AppendCompactor:
        """Return a compactor that merges files."""
        return AppendCompactor(layout=self.layout, data_files=data_files, reader=reader)
