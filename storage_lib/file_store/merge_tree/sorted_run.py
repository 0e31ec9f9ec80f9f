"""Sorted run: files sorted by key with disjoint key intervals, so that each key occurs at most once."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedRun:
    """Files in key order; the caller guarantees it."""

    files: tuple[DataFileMeta, ...]

    @property
    def size_bytes(self) -> int:
        """Total file size on storage, in bytes."""
        return sum(file.file_size for file in self.files)

    @property
    def row_count(self) -> int:
        """Number of rows, including delete rows."""
        return sum(file.row_count for file in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSortedRun:
    """A sorted run and its level in the LSM tree."""

    level: int
    run: SortedRun
