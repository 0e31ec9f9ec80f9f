"""Carries a compaction out: rewrites what overlaps or is small, moves the rest to its new level unread.

What a move means: the file appears in ``compact_before`` with its old level and in ``compact_after`` with the new one.
Survivors keep their sequence numbers and kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from storage_lib.file_store.merge_tree.merge_tree_reader import MERGE_BYTES_MAX, read_merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts one bucket. ``merge_bytes_max`` bounds the decoded rows held at once, roughly."""

    key_value: KeyValueSchema
    reader: DataFileReader
    data_files: DataFileWriter
    merge_bytes_max: int = MERGE_BYTES_MAX

    def compact(self, unit: CompactionUnit) -> Increment:
        """Make the unit's files one sorted run of its output level.

        Empty if every file may stay as it is. On an error nothing stays behind. New files are durable once the paths
        of ``take_unsynced`` have been synced.
        """
        before: list[DataFileMeta] = []
        after: list[DataFileMeta] = []
        written: list[DataFileMeta] = []
        try:
            for task in self._tasks(unit):
                if task.is_rewrite:
                    rewritten = self._rewrite(task.files, unit)
                    written += rewritten
                    before += task.files
                    after += rewritten
                else:
                    moved = [file for file in task.files if file.level != unit.output_level]
                    before += moved
                    after += [replace(file, level=unit.output_level) for file in moved]
        except BaseException:
            self.data_files.delete(written)
            raise
        return Increment(compact_before=tuple(before), compact_after=tuple(after))

    def take_unsynced(self) -> list[str]:
        """Paths to make durable before the commit."""
        return self.data_files.take_unsynced()

    def abort(self, increment: Increment) -> None:
        """Delete the files that a compaction wrote, after its commit failed; moved files stay."""
        old_names = {file.file_name for file in increment.compact_before}
        self.data_files.delete([file for file in increment.compact_after if file.file_name not in old_names])

    def _tasks(self, unit: CompactionUnit) -> Iterator[_Task]:
        """Neighbours in key order that have to be rewritten together, and files that need not be."""
        together: list[DataFileMeta] = []
        overlapping = False
        for section in interval_partition(unit.files, self.key_value.comparable_key):
            if len(section) > 1:
                together += [file for run in section for file in run.files]
                overlapping = True
                continue
            for file in section[0].files:
                if self._is_small(file):
                    together.append(file)
                    continue
                yield from self._task_of(together, unit, overlapping=overlapping)
                together, overlapping = [], False
                yield from self._task_of([file], unit, overlapping=False)
        yield from self._task_of(together, unit, overlapping=overlapping)

    def _task_of(self, files: list[DataFileMeta], unit: CompactionUnit, *, overlapping: bool) -> Iterable[_Task]:
        if not files:
            return
        has_deletes_to_drop = unit.drops_deletes and any(file.delete_row_count != 0 for file in files)
        yield _Task(files=tuple(files), is_rewrite=overlapping or len(files) > 1 or has_deletes_to_drop)

    def _is_small(self, file: DataFileMeta) -> bool:
        # The last file of a rewrite is shorter than its target by chance: only under half of it is joining worth it.
        return file.file_size * 2 < self.data_files.target_file_size

    def _rewrite(self, files: tuple[DataFileMeta, ...], unit: CompactionUnit) -> list[DataFileMeta]:
        rows = read_merged(
            files,
            reader=self.reader,
            key_value=self.key_value,
            columns=self.key_value.value_names,
            drop_deletes=unit.drops_deletes,
            with_kv=True,
            ordered=True,
            merge_bytes_max=self.merge_bytes_max,
        )
        return self.data_files.write(rows, level=unit.output_level, file_source=FileSource.COMPACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    files: tuple[DataFileMeta, ...]
    is_rewrite: bool
