"""One reader's share of a snapshot: files of one bucket whose keys no other split of the plan touches."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Read by one task; frozen and picklable. ``partition`` is the serialized BinaryRow."""

    snapshot_id: int
    partition: bytes
    bucket: int
    files: tuple[DataFileMeta, ...]

    @property
    def row_count(self) -> int:
        """Physical rows, an upper bound of what a merge read yields."""
        return sum(file.row_count for file in self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
        return sum(file.file_size for file in self.files)
