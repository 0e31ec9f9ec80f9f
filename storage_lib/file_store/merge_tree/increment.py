"""Changes of one bucket's writer, or of one compaction, since its last commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.deletion_vector import DeletionRange


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketVectors:
    """All deletion vectors of a bucket after a compaction, in one index file; ``index_file`` is None if there are none.

    ``ranges`` has the range of each data file's vector. ``seen`` are the bucket's files from level 1 up that the
    compaction read, with their vectors: it must not follow a snapshot with other ones.
    """

    index_file: str | None
    size_bytes: int
    ranges: Mapping[str, DeletionRange]
    seen: tuple[DataFileMeta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """Files to add and to delete: new rows, and a compaction's inputs and outputs.

    A file that was moved to another level without rewriting appears in both ``compact_before`` (old level) and
    ``compact_after`` (new level) under one name. ``new_changelog`` and ``compact_changelog`` are changelog files of the
    new rows and of the compaction. ``looked_up`` are files whose rows a compaction read but did not replace: it must
    not follow a snapshot without them.
    """

    new_files: tuple[DataFileMeta, ...] = ()
    deleted_files: tuple[DataFileMeta, ...] = ()
    compact_before: tuple[DataFileMeta, ...] = ()
    compact_after: tuple[DataFileMeta, ...] = ()
    vectors: BucketVectors | None = None
    new_changelog: tuple[DataFileMeta, ...] = ()
    compact_changelog: tuple[DataFileMeta, ...] = ()
    looked_up: tuple[DataFileMeta, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it has no file to commit."""
        return not (
            self.new_files
            or self.deleted_files
            or self.compact_before
            or self.compact_after
            or self.new_changelog
            or self.compact_changelog
        )
