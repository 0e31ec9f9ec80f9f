"""Kind of table without a primary key that accepts updates and deletions: an LSM tree of rows and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.key_value import VALUE_COUNT
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.compactor import Compactor
from storage_lib.file_store.merge_tree.compaction.key_intervals import KeyInterval
from storage_lib.file_store.merge_tree.compaction.marking_compactor import MarkingCompactor
from storage_lib.file_store.merge_tree.key_value_table import KeyValueTable
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX
from storage_lib.file_store.merge_tree.merge_tree_writer import MergeTreeWriter
from storage_lib.file_store.merge_tree.overwrite_writer import OverwriteWriter
from storage_lib.file_store.value_count.counted_format import CountedFormat
from storage_lib.file_store.value_count.counted_rows import repeated
from storage_lib.file_store.value_count.value_count_schema import ValueCountSchema, everything
from storage_lib.format.file_format import FileFormat
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.types.row_kind import RowKind


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueCountTable:
    """A ``TableKind``; ``counts`` is a table whose key is the row and whose merge function adds counts."""

    counts: KeyValueTable

    @property
    def layout(self) -> ValueCountSchema:
        """Columns of rows and counts."""
        assert isinstance(self.counts.layout, ValueCountSchema)  # noqa: S101  made so
        return self.counts.layout

    def file_format(self, inner: FileFormat) -> CountedFormat:
        """Return a format that other engines refuse."""
        return CountedFormat(inner=inner)

    @property
    def comparable_key(self) -> None:
        """Return None: runs may overlap, since readers add the counts."""
        return

    def writer(self, data_files: DataFileWriter, *, next_sequence: int) -> MergeTreeWriter:
        """Return a writer of files at level 0."""
        return self.counts.writer(data_files, next_sequence=next_sequence)

    def overwriter(
        self,
        data_files: DataFileWriter,
        reader: DataFileReader,
        *,
        stored_rows: bool = False,  # noqa: ARG002  counted
    ) -> OverwriteWriter:
        """Return a writer of one sorted run at the deepest level."""
        return self.counts.overwriter(data_files, reader)

    def read(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
        ordered: bool,
        key_range: KeyRange | None = None,  # noqa: ARG002  always None: see ``comparable_key``
    ) -> Iterator[pa.RecordBatch]:
        """Yield a row with count n as n rows."""
        with_count = (*columns, *((VALUE_COUNT,) if columns else ()))
        for batch in self.counts.read(files, reader, columns=with_count, predicate=predicate, ordered=ordered):
            yield from repeated(batch.select(list(columns)), batch.column(VALUE_COUNT).to_numpy())

    def changes(
        self, files: Sequence[DataFileMeta], reader: DataFileReader
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield inserts and deletions, each as often as its count."""
        for file in files:
            for batch in reader.read(file, self.layout.value_names, batch_rows=BATCH_ROWS_MAX):
                counts = batch.column(VALUE_COUNT).to_numpy()
                rows = batch.select(list(self.layout.key_names))
                for kind, times in ((RowKind.DELETE, -counts), (RowKind.INSERT, counts)):
                    for part in repeated(rows, np.maximum(times, 0)):
                        yield part, pa.repeat(pa.scalar(int(kind), pa.int8()), part.num_rows)

    def groups(self, files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
        """Return the sections: groups that share no row."""
        return self.counts.groups(files)

    def unmerged(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:  # noqa: ARG002  of no file
        """Return none: a file has one row for several equal rows of the table."""
        return ()

    def independent(self, files: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        """Return all files: every version of a matching row matches itself."""
        return files

    def compaction_units(self, files: Sequence[DataFileMeta], *, full: bool) -> list[CompactionUnit]:
        """Return units as with a key, except that no negative count is dropped: its row may come later."""
        low, high = everything()
        all_keys = (KeyInterval(low=low, high=high),)
        return [replace(unit, older_keys=all_keys) for unit in self.counts.compaction_units(files, full=full)]

    def compactor(self, data_files: DataFileWriter, reader: DataFileReader) -> Compactor | MarkingCompactor:
        """Return a compactor that adds counts."""
        return self.counts.compactor(data_files, reader)
