"""Metadata of a data file in a manifest (``_FILE`` in docs/format.md, 20 fields).

Keys are kept as serialized BinaryRows (big-endian arity, then the row), exactly as a manifest stores them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from storage_lib.file_store.data_file.deletion_vector import DeletionFile
from storage_lib.schema.filter.column_stats import SimpleStats

__all__ = ["DataFileMeta", "FileSource", "SimpleStats"]


class FileSource(IntEnum):
    """Source of a data file; the value is the code in manifests."""

    APPEND = 0
    COMPACT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFileMeta:
    """One data file of one bucket: its key interval, its sequence interval and its level in the LSM tree."""

    file_name: str
    file_size: int
    row_count: int
    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    value_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    schema_id: int
    level: int
    extra_files: tuple[str, ...] = ()
    creation_time_ms: int | None = None
    delete_row_count: int | None = 0
    embedded_file_index: bytes | None = None
    file_source: FileSource | None = FileSource.APPEND
    value_stats_cols: tuple[str, ...] | None = None
    external_path: str | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    deletion_file: DeletionFile | None = None
    """Rows deleted at the scanned snapshot: a property of the snapshot, not of the file, and in no manifest."""

    identity: tuple[object, ...] = field(init=False, repr=False, compare=False)
    """Identity that, with partition and bucket, matches a DELETE with its ADD (docs/format.md)."""

    def __post_init__(self) -> None:
        """Compute the identity, which a commit compares with those of all files of its buckets."""
        identity = (self.level, self.file_name, self.extra_files, self.embedded_file_index, self.external_path)
        object.__setattr__(self, "identity", identity)
