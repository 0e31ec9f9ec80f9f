"""Part of a snapshot for one reader: files of one bucket whose keys no other split of the plan contains.

A split with a key range contains only the keys in it; other splits have the rest of the same files.
"""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.key_range import KeyRange


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Unit of reading for one task; frozen and picklable. ``partition`` is the serialized BinaryRow."""

    snapshot_id: int
    partition: bytes
    bucket: int
    files: tuple[DataFileMeta, ...]
    key_range: KeyRange | None = None
    """Keys that the split contains; None: all keys of its files."""

    @property
    def row_count(self) -> int:
        """Number of physical rows, an upper bound of the rows that a read yields."""
        return sum(file.row_count for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Total file size on storage, in bytes; a split with a key range reads part of it."""
        return sum(file.file_size for file in self.files)
