"""A sorted run: files sorted by key whose key intervals do not overlap, so that each key is in it at most once."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedRun:
    """Files in key order. The caller guarantees the order."""

    files: tuple[DataFileMeta, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
        return sum(file.file_size for file in self.files)

    @property
    def row_count(self) -> int:
        """Rows, those that only delete included."""
        return sum(file.row_count for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSortedRun:
    """A sorted run and the level of the LSM tree on which it lies."""

    level: int
    run: SortedRun
