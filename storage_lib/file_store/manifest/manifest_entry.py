"""Addition or deletion of one data file of a bucket; a manifest is a list of these (docs/format.md, 1.7)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta


class FileKind(IntEnum):
    """Whether the file was added or deleted; the value is the code in manifests."""

    ADD = 0
    DELETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """Change of one file; ``partition`` is a serialized BinaryRow, ``total_buckets`` its bucket count when written."""

    kind: FileKind
    partition: bytes
    bucket: int
    total_buckets: int
    file: DataFileMeta

    @property
    def identity(self) -> tuple[object, ...]:
        """Identity shared by the ADD and the DELETE that cancel each other."""
        return (self.partition, self.bucket, *self.file.identity)


def cancel_out(entries: list[ManifestEntry]) -> list[ManifestEntry]:
    """Drop every ADD whose DELETE is among ``entries``, and that DELETE; the others keep their order.

    The result may still contain DELETEs of files that were added by manifests outside of ``entries``.
    A file moved back to a level it has had before is not supported by the format (docs/format.md, 1.7).
    """
    deleted = {entry.identity for entry in entries if entry.kind is FileKind.DELETE}
    if not deleted:
        return entries
    cancelled = deleted & {entry.identity for entry in entries if entry.kind is FileKind.ADD}
    if not cancelled:
        return entries
    return [entry for entry in entries if entry.identity not in cancelled]
