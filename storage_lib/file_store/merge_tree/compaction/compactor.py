"""Runs a compaction: rewrites overlapping or small files, and moves the others to their new level unread.

A moved file appears in ``compact_before`` with its old level and in ``compact_after`` with the new one. Surviving rows
keep their sequence numbers and kinds. If changelog files have to be written, moved files are read to compute changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter, FileSeries
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.merge_tree.compaction.key_intervals import CoveredKeys, interval_of, intervals_of
from storage_lib.file_store.merge_tree.history_merge import HistoryMerge
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import (
    MERGE_BYTES_MAX,
    read_merged,
    read_with_history,
)
from storage_lib.schema.options.table_options import ChangelogProducer


@dataclass(frozen=True, slots=True, kw_only=True)
class Compactor:
    """Compacts one bucket. ``merge_bytes_max`` limits, approximately, the decoded rows held at once.

    ``looks_up``: rows above level 0 are complete, so rows that leave level 0 are merged with the rows of their keys in
    the unit's ``others``. ``producer`` selects the changelog files to write; ``skips_equal`` omits changes of no value
    from them. ``keeps_first`` is for first-row. ``keeps_deletes``: delete rows are kept even if nothing is older, for
    older rows that may be written later.
    """

    key_value: KeyValueSchema
    reader: DataFileReader
    data_files: DataFileWriter
    merge_bytes_max: int = MERGE_BYTES_MAX
    merge_function: MergeFunction = DEDUPLICATE
    looks_up: bool = False
    producer: ChangelogProducer = ChangelogProducer.NONE
    skips_equal: bool = False
    keeps_first: bool = False
    keeps_deletes: bool = False

    def compact(self, unit: CompactionUnit) -> Increment:
        """Merge the unit's files into one sorted run of its output level.

        The result is empty if no file has to change. After an error, no file is left. New files are durable once the
        paths of ``take_unsynced`` have been synced.
        """
        before: list[DataFileMeta] = []
        after: list[DataFileMeta] = []
        written: list[DataFileMeta] = []
        looked_up: dict[str, DataFileMeta] = {}
        changelog = self.data_files.changelog(level=unit.output_level, file_source=FileSource.COMPACT)
        try:
            for task in self._tasks(unit):
                looked_up |= {file.file_name: file for piece in task.pieces for file in piece.looked_up}
                rows = self._rows(task, unit, changelog)
                if task.is_rewrite:
                    rewritten = self.data_files.write(rows, level=unit.output_level, file_source=FileSource.COMPACT)
                    written += rewritten
                    before += task.files
                    after += rewritten
                    continue
                if task.writes_changelog:
                    for _ in rows:
                        pass  # only the changes are wanted
                moved = [file for file in task.files if file.level != unit.output_level]
                before += moved
                after += [replace(file, level=unit.output_level) for file in moved]
            changes = changelog.close()
        except BaseException:
            changelog.abandon()
            self.data_files.delete(written)
            raise
        return Increment(
            compact_before=tuple(before),
            compact_after=tuple(after),
            compact_changelog=tuple(changes),
            looked_up=tuple(looked_up.values()),
        )

    def take_unsynced(self) -> list[str]:
        """Return the paths to make durable before the commit."""
        return self.data_files.take_unsynced()

    def abort(self, increment: Increment) -> None:
        """Delete the files that a compaction wrote, after its commit failed; moved files are kept."""
        old_names = {file.file_name for file in increment.compact_before}
        self.data_files.delete([file for file in increment.compact_after if file.file_name not in old_names])
        self.data_files.delete(increment.compact_changelog)

    def _tasks(self, unit: CompactionUnit) -> Iterator[_Task]:
        """Yield neighbours in key order that have to be rewritten together, and files that need no rewrite."""
        older = CoveredKeys(unit.older_keys, self.key_value.comparable_key)
        together: list[_Piece] = []
        for section in interval_partition(unit.files, self.key_value.comparable_key):
            if len(section) > 1:
                together.append(self._piece([file for run in section for file in run.files], older, unit))
                continue
            for file in section[0].files:
                piece = self._piece([file], older, unit)
                if self._is_small(file):
                    together.append(piece)
                    continue
                yield from _task_of(together)
                together = []
                yield from _task_of([piece])
        yield from _task_of(together)

    def _piece(self, files: list[DataFileMeta], older: CoveredKeys, unit: CompactionUnit) -> _Piece:
        interval = interval_of(files, self.key_value.comparable_key)
        return _Piece(
            files=tuple(files),
            drops_deletes=not self.keeps_deletes and not older.touch(interval),
            looked_up=self._looked_up(files, unit),
            merges_looked_up=not self.merge_function.keeps_newest,
            writes_changelog=self._writes_changelog(files, unit),
        )

    def _looked_up(self, files: Iterable[DataFileMeta], unit: CompactionUnit) -> tuple[DataFileMeta, ...]:
        """Return the files that may have older versions of rows that leave level 0, if these matter."""
        fresh = [file for file in files if file.level == 0]
        matters = not self.merge_function.keeps_newest or self.producer is ChangelogProducer.LOOKUP
        if not self.looks_up or not matters or not fresh or not unit.others:
            return ()
        covered = CoveredKeys(intervals_of(fresh), self.key_value.comparable_key)
        intervals = intervals_of(unit.others)
        return tuple(file for file, each in zip(unit.others, intervals, strict=True) if covered.touch(each))

    def _writes_changelog(self, files: Iterable[DataFileMeta], unit: CompactionUnit) -> bool:
        if self.producer is ChangelogProducer.LOOKUP:
            return any(file.level == 0 for file in files)
        if self.producer is ChangelogProducer.FULL_COMPACTION and unit.output_level == unit.level_max:
            return any(file.level != unit.level_max for file in files)
        return False

    def _is_small(self, file: DataFileMeta) -> bool:
        # The last file of a rewrite is usually below the target size: merge files only if below half of it.
        return file.file_size * 2 < self.data_files.target_file_size

    def _rows(self, task: _Task, unit: CompactionUnit, changelog: FileSeries) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the task's output, and add their changes to ``changelog``."""
        for piece in task.pieces:
            if piece.looked_up or piece.writes_changelog:
                yield from self._merged_with_history(piece, unit, changelog)
                continue
            yield from read_merged(
                piece.files,
                reader=self.reader,
                key_value=self.key_value,
                merge_function=self.merge_function,
                columns=self.key_value.value_names,
                drop_deletes=piece.drops_deletes,
                with_kv=True,
                ordered=True,
                lowest_counts=self.looks_up,
                merge_bytes_max=self.merge_bytes_max,
            )

    def _merged_with_history(
        self, piece: _Piece, unit: CompactionUnit, changelog: FileSeries
    ) -> Iterator[pa.RecordBatch]:
        history = HistoryMerge(
            key_value=self.key_value,
            merge_function=self.merge_function,
            looks_up=self.looks_up,
            writes_changelog=piece.writes_changelog,
            top_level=unit.level_max if self.producer is ChangelogProducer.FULL_COMPACTION else None,
            keeps_first=self.keeps_first,
            skips_equal=self.skips_equal,
        )
        merged = read_with_history(
            piece.files,
            looked_up=piece.looked_up,
            reader=self.reader,
            history=history,
            drops_deletes=piece.drops_deletes,
            merge_bytes_max=self.merge_bytes_max,
        )
        for each in merged:
            if each.changes is not None:
                changelog.add(each.changes)
            yield each.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """Files that overlap, or one file. ``drops_deletes``: delete rows are dropped, because nothing is older.

    ``looked_up`` are files outside of the unit that may have older versions; ``merges_looked_up``: not only the newest
    version of a key counts.
    """

    files: tuple[DataFileMeta, ...]
    drops_deletes: bool
    looked_up: tuple[DataFileMeta, ...]
    merges_looked_up: bool
    writes_changelog: bool

    @property
    def must_be_rewritten(self) -> bool:
        return (
            len(self.files) > 1
            or (self.drops_deletes and self.files[0].delete_row_count != 0)
            or (bool(self.looked_up) and self.merges_looked_up)
        )


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

    @property
    def writes_changelog(self) -> bool:
        return any(piece.writes_changelog for piece in self.pieces)


def _task_of(pieces: list[_Piece]) -> Iterable[_Task]:
    if pieces:
        yield _Task(pieces=tuple(pieces))
