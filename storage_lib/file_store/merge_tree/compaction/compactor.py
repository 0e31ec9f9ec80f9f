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
from storage_lib.file_store.merge_tree.compaction.key_intervals import CoveredKeys, interval_of
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import MERGE_BYTES_MAX, read_merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts one bucket. ``merge_bytes_max`` bounds the decoded rows held at once, roughly."""

    key_value: KeyValueSchema
    reader: DataFileReader
    data_files: DataFileWriter
    merge_bytes_max: int = MERGE_BYTES_MAX
    merge_function: MergeFunction = DEDUPLICATE

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
                    rewritten = self._rewrite(task, unit.output_level)
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
        older = CoveredKeys(unit.older_keys, self.key_value.comparable_key)
        together: list[_Piece] = []
        for section in interval_partition(unit.files, self.key_value.comparable_key):
            if len(section) > 1:
                together.append(self._piece([file for run in section for file in run.files], older))
                continue
            for file in section[0].files:
                piece = self._piece([file], older)
                if self._is_small(file):
                    together.append(piece)
                    continue
                yield from _task_of(together)
                together = []
                yield from _task_of([piece])
        yield from _task_of(together)

    def _piece(self, files: list[DataFileMeta], older: CoveredKeys) -> _Piece:
        interval = interval_of(files, self.key_value.comparable_key)
        return _Piece(files=tuple(files), drops_deletes=not older.touch(interval))

    def _is_small(self, file: DataFileMeta) -> bool:
        # The last file of a rewrite is shorter than its target by chance: only under half of it is joining worth it.
        return file.file_size * 2 < self.data_files.target_file_size

    def _rewrite(self, task: _Task, output_level: int) -> list[DataFileMeta]:
        rows = (
            batch
            for piece in task.pieces
            for batch in read_merged(
                piece.files,
                reader=self.reader,
                key_value=self.key_value,
                merge_function=self.merge_function,
                columns=self.key_value.value_names,
                drop_deletes=piece.drops_deletes,
                with_kv=True,
                ordered=True,
                merge_bytes_max=self.merge_bytes_max,
            )
        )
        return self.data_files.write(rows, level=output_level, file_source=FileSource.COMPACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Files that overlap, or one file. ``drops_deletes``: below is nothing older, so rows that only delete may go."""

    files: tuple[DataFileMeta, ...]
    drops_deletes: bool

    @property
    def must_be_rewritten(self) -> bool:
        return len(self.files) > 1 or (self.drops_deletes and self.files[0].delete_row_count != 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Neighbouring pieces, in key order."""

    pieces: tuple[_Piece, ...]

    @property
    def files(self) -> tuple[DataFileMeta, ...]:
        return tuple(file for piece in self.pieces for file in piece.files)

    @property
    def is_rewrite(self) -> bool:
        return len(self.pieces) > 1 or self.pieces[0].must_be_rewritten


def _task_of(pieces: list[_Piece]) -> Iterable[_Task]:
    if pieces:
        yield _Task(pieces=tuple(pieces))
