"""Compaction of an append table: merges small files of one bucket, in the order of their rows.

A file is small below half of the target size; larger ones are never rewritten.

    due    small files that together reach the target size; else the newest ones, if there are ``min_file_count`` of
           them, none larger than all newer ones together: so each rewrite doubles the size of a row's file, and
           a table of many small commits rewrites its rows a few times, not once per commit
    full   any two small files

If rows are assigned to buckets by their values, only neighbours in age are merged, which keeps the bucket's order for
readers that treat it as a queue. Otherwise rows have no order, and any small files are merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.file_store.append.append_layout import AppendLayout
from storage_lib.file_store.append.append_reader import in_append_order, read_appended
from storage_lib.file_store.append.append_writer import APPEND_LEVEL
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.increment import Increment

JOINED_MIN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFileCompaction:
    """Chooses files without I/O. ``only_neighbours``: no larger file may be between merged files."""

    target_file_size: int
    min_file_count: int
    only_neighbours: bool

    def pick(self, files: Sequence[DataFileMeta], *, full: bool) -> list[CompactionUnit]:
        """Return the groups to merge, each a separate compaction; empty if none is due."""
        groups = self._groups(files) if full else map(self._due, self._groups(files))
        return [
            CompactionUnit(files=tuple(group), output_level=APPEND_LEVEL)
            for group in groups
            if len(group) >= JOINED_MIN
        ]

    def _due(self, group: Sequence[DataFileMeta]) -> Sequence[DataFileMeta]:
        if self._is_whole(group):
            return group
        count, size = 0, 0
        for file in reversed(group):
            if count and file.file_size > size:
                break
            count, size = count + 1, size + file.file_size
        return group[-count:] if count >= self.min_file_count else ()

    def _groups(self, files: Sequence[DataFileMeta]) -> Iterator[list[DataFileMeta]]:
        """Yield groups of small files in append order; a group ends when it has reached the target size."""
        group: list[DataFileMeta] = []
        for file in in_append_order(files):
            is_small = file.file_size * 2 < self.target_file_size
            if is_small:
                group.append(file)
            if self._is_whole(group) or (self.only_neighbours and not is_small):
                yield group
                group = []
        yield group

    def _is_whole(self, group: Sequence[DataFileMeta]) -> bool:
        return sum(file.file_size for file in group) >= self.target_file_size


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendCompactor:
    """Merges files of one bucket, with a few batches in memory at a time."""

    layout: AppendLayout
    data_files: DataFileWriter
    reader: DataFileReader

    def compact(self, unit: CompactionUnit) -> Increment:
        """Rewrite the unit's rows, with sequence numbers from their smallest on."""
        first = min(file.min_sequence_number for file in unit.files)
        written = self.data_files.write(
            self._numbered(unit.files, first), level=unit.output_level, file_source=FileSource.COMPACT
        )
        return Increment(compact_before=unit.files, compact_after=tuple(written))

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""
        return self.data_files.take_unsynced()

    def _numbered(self, files: Sequence[DataFileMeta], next_sequence: int) -> Iterator[pa.RecordBatch]:
        for rows in read_appended(files, self.reader, columns=self.layout.value_names):
            yield self.layout.numbered(rows, next_sequence)
            next_sequence += rows.num_rows
