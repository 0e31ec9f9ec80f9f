"""What one bucket's writer, or one compaction, changed since its last commit."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """Files to add and to delete: new rows, and a compaction's inputs and outputs.

    A file that was moved to another level without rewriting appears in both ``compact_before`` (old level)
    and ``compact_after`` (new level) under one name.
    """

    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not (self.new_files or self.deleted_files or self.compact_before or self.compact_after)
