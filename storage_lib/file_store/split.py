"""Part of a snapshot for one reader: files of one bucket whose keys no other split of the plan contains."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Unit of reading for one task; frozen and picklable. ``partition`` is the serialized BinaryRow."""

    snapshot_id: int
    partition: bytes
    bucket: int
    files: tuple[DataFileMeta, ...]

    @property
    def row_count(self) -> int:
        """Number of physical rows, an upper bound of the rows that a merge read yields."""
        return sum(file.row_count for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Total file size on storage, in bytes."""
        return sum(file.file_size for file in self.files)
