"""Kind of table with a primary key: an LSM tree per bucket that merges the versions of a key to one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.key_value import VALUE_KIND, KeyValueSchema
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy, CompactionUnit
from storage_lib.file_store.merge_tree.compaction.compactor import Compactor
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.compaction.marking_compactor import MarkingCompactor
from storage_lib.file_store.merge_tree.interval_partition import Section, interval_partition
from storage_lib.file_store.merge_tree.levels import levels_of
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.first_row import FirstRow
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX, read_merged
from storage_lib.file_store.merge_tree.merge_tree_writer import MergeTreeWriter
from storage_lib.file_store.merge_tree.overwrite_writer import OverwriteWriter
from storage_lib.format.file_format import FileFormat
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.options.table_options import ChangelogProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyValueTable:
    """A ``TableKind``. ``merge_function`` merges the versions of a key, ``strategy`` decides when to compact."""

    layout: KeyValueSchema
    merge_function: MergeFunction
    strategy: CompactionStrategy
    level_count: int
    memtable_bytes_max: int
    has_deletion_vectors: bool = False
    """Whether compactions mark old versions as deleted; above level 0 each key is then live in only one file."""
    looks_up: bool = False
    """Whether rows above level 0 are complete (``counting_rows.py``)."""
    producer: ChangelogProducer = ChangelogProducer.NONE
    skips_equal_changes: bool = False
    keeps_first: bool = False
    keeps_deletes: bool = False
    combines: bool = False
    """Whether a key's row is combined from its versions, instead of being one of them."""

    @property
    def comparable_key(self) -> Callable[[bytes], ComparableKey]:
        """Order of the rows in a run."""
        return self.layout.comparable_key

    def file_format(self, inner: FileFormat) -> FileFormat:
        """Return the format unchanged."""
        return inner

    def writer(self, data_files: DataFileWriter, *, next_sequence: int) -> MergeTreeWriter:
        """Return a writer of files at level 0."""
        return MergeTreeWriter(
            key_value=self.layout,
            data_files=data_files,
            next_sequence=next_sequence,
            memtable_bytes_max=self.memtable_bytes_max,
            merge_function=self.merge_function,
            with_changelog=self.producer is ChangelogProducer.INPUT,
        )

    def overwriter(
        self, data_files: DataFileWriter, reader: DataFileReader, *, stored_rows: bool = False
    ) -> OverwriteWriter:
        """Return a writer of one sorted run at the deepest level; ``stored_rows`` are not merged as input is."""
        return OverwriteWriter(
            key_value=self.layout,
            data_files=data_files,
            reader=reader,
            top_level=self.level_count - 1,
            memtable_bytes_max=self.memtable_bytes_max,
            merge_function=DEDUPLICATE if stored_rows else self.merge_function,
        )

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
        """Yield merged rows: one per key in ``key_range``."""
        together = [[file] for file in files] if self._is_merged_already(files) and not ordered else [files]
        for each in together:
            yield from self._merged(
                each, reader, columns=columns, predicate=predicate, ordered=ordered, key_range=key_range
            )

    def newest_versions(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the merged version of each key, also of deleted ones."""
        return self._merged(files, reader, columns=columns, predicate=predicate, drop_deletes=False)

    def _merged(
        self,
        files: Sequence[DataFileMeta],
        reader: DataFileReader,
        *,
        columns: Sequence[str],
        predicate: Predicate | None,
        drop_deletes: bool = True,
        ordered: bool = False,
        key_range: KeyRange | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return read_merged(
            files,
            reader=reader,
            key_value=self.layout,
            merge_function=self.merge_function,
            columns=columns,
            predicate=predicate,
            drop_deletes=drop_deletes,
            ordered=ordered,
            lowest_counts=self.looks_up,
            key_range=key_range,
        )

    def changes(
        self, files: Sequence[DataFileMeta], reader: DataFileReader
    ) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield rows and kinds as stored in the files, unmerged."""
        names = [VALUE_KIND, *self.layout.value_names]
        for file in files:
            for batch in reader.read(file, names, batch_rows=BATCH_ROWS_MAX):
                yield batch.select(names[1:]), batch.column(VALUE_KIND)

    def groups(self, files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
        """Return the sections: groups that share no key."""
        if self._is_merged_already(files):
            return [[file] for file in files]
        sections = interval_partition(files, self.layout.comparable_key)
        return [[file for run in section for file in run.files] for section in sections]

    def stores_rows(self, files: Sequence[DataFileMeta]) -> bool:
        """Return whether each row of a bucket is in one of its files as it is, so that ``choice`` finds it."""
        if not self.combines or (self.looks_up and all(file.level > 0 for file in files)):
            return True
        sections = interval_partition(files, self.layout.comparable_key)
        return all(len(section) == 1 or (self.looks_up and _is_above_level0(section)) for section in sections)

    @property
    def choice(self) -> MergeFunction:
        """What chooses the row of a key among its versions. REQUIRES files that ``stores_rows`` accepts."""
        # Only the complete row on the lowest level counts, so each key has one version to choose.
        return FirstRow(table="") if self.combines else self.merge_function

    def unmerged(self, files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        """Return files that share no key with another: each key has one version."""
        return self.independent(files)

    def independent(self, files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
        """Return files that share no key with another: an older version of a row may match when its newest does not."""
        if self._is_merged_already(files):
            return list(files)
        sections = interval_partition(files, self.layout.comparable_key)
        return [file for section in sections if len(section) == 1 for file in section[0].files]

    def compaction_units(self, files: Sequence[DataFileMeta], *, full: bool) -> list[CompactionUnit]:
        """Return the unit that the strategy picks; with ``full``, all files, unless they are one run already."""
        levels = levels_of(files, level_count=self.level_count, comparable_key=self.layout.comparable_key)
        unit = (FullCompaction() if full else self.strategy).pick(levels)
        if unit is None:
            return []
        unit = replace(unit, level_max=levels.level_max)
        if not self.looks_up:
            return [unit]
        taken = {file.identity for file in unit.files}
        others = tuple(file for file in files if file.level > 0 and file.identity not in taken)
        # A row marked as deleted in a deletion vector needs no -D row.
        older_keys = () if self.has_deletion_vectors else unit.older_keys
        return [replace(unit, older_keys=older_keys, others=others)]

    def compactor(self, data_files: DataFileWriter, reader: DataFileReader) -> Compactor | MarkingCompactor:
        """Return a compactor that merges sorted runs."""
        compactor = Compactor(
            key_value=self.layout,
            reader=reader,
            data_files=data_files,
            merge_function=self.merge_function,
            looks_up=self.looks_up,
            producer=self.producer,
            skips_equal=self.skips_equal_changes,
            keeps_first=self.keeps_first,
            keeps_deletes=self.keeps_deletes,
        )
        return MarkingCompactor(compactor=compactor) if self.has_deletion_vectors else compactor

    def _is_merged_already(self, files: Sequence[DataFileMeta]) -> bool:
        return self.has_deletion_vectors and all(file.level > 0 and file.delete_row_count == 0 for file in files)


def _is_above_level0(section: Section) -> bool:
    return all(file.level > 0 for run in section for file in run.files)
