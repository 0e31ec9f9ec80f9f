"""Data files that make up a table at one snapshot, by bucket; immutable: applying changes returns a new value.

Partitions and buckets that a commit doesn't touch are shared with the previous value, so the cost of following a long
history depends only on its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from storage_lib.file_store.data_file.deletion_vector import DeletionFile
from storage_lib.file_store.manifest.index_manifest import DeletionFiles
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry, cancel_out

_Files: TypeAlias = dict[tuple[object, ...], ManifestEntry]
_Buckets: TypeAlias = dict[int, _Files]


class LiveFiles:
    """Entries of kind ADD by partition (serialized BinaryRow) and bucket, in commit order within each bucket."""

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Mapping[bytes, _Buckets]) -> None:
        self._partitions = partitions

    @classmethod
    def empty(cls) -> LiveFiles:
        """Return the live files of a table without a commit."""
        return cls({})

    def apply(self, changes: Iterable[ManifestEntry]) -> LiveFiles:
        """Return these files after ``changes``; a DELETE of a file that is not live is ignored."""
        partitions = dict(self._partitions)
        copied: set[bytes | tuple[bytes, int]] = set()
        for entry in cancel_out(list(changes)):
            partition, bucket = entry.partition, entry.bucket
            if partition not in copied:
                copied.add(partition)
                partitions[partition] = dict(partitions.get(partition, {}))
            buckets = partitions[partition]
            if (partition, bucket) not in copied:
                copied.add((partition, bucket))
                buckets[bucket] = dict(buckets.get(bucket, {}))
            if entry.kind is FileKind.ADD:
                buckets[bucket][entry.file.identity] = entry
            else:
                buckets[bucket].pop(entry.file.identity, None)
                if not buckets[bucket]:
                    del buckets[bucket]
                    copied.discard((partition, bucket))
                if not buckets:
                    del partitions[partition]
                    copied.discard(partition)
        return LiveFiles(partitions)

    def marked(self, deletion_files: DeletionFiles) -> LiveFiles:
        """Return these files, each with the location of its deletion vector, if it has one."""
        partitions = dict(self._partitions)
        for partition, bucket in deletion_files:
            files = partitions.get(partition, {}).get(bucket)
            if files is not None:
                of_bucket = deletion_files[partition, bucket]
                marked = {identity: _marked(entry, of_bucket) for identity, entry in files.items()}
                partitions[partition] = {**partitions[partition], bucket: marked}
        return LiveFiles(partitions)

    @property
    def partitions(self) -> Iterable[bytes]:
        """Every partition with at least one file."""
        return self._partitions.keys()

    def buckets_of(self, partition: bytes) -> Iterable[int]:
        """Return the buckets of a partition that have at least one file."""
        return self._partitions.get(partition, {}).keys()

    def of(self, partition: bytes, bucket: int) -> Iterable[ManifestEntry]:
        """Return the entries of one bucket, oldest commit first."""
        return self._partitions.get(partition, {}).get(bucket, {}).values()

    def holds(self, entry: ManifestEntry) -> bool:
        """Return whether exactly this file is live: same bucket, same name, same level."""
        return entry.file.identity in self._partitions.get(entry.partition, {}).get(entry.bucket, {})

    def held(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Return the ``entries`` whose exact file is live."""
        return [entry for entry in entries if self.holds(entry)]

    def missing(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Return the ``entries`` whose exact file is not live."""
        return [entry for entry in entries if not self.holds(entry)]

    def changed(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Return the ``entries`` whose exact file is not live, or has other rows marked as deleted."""
        return [entry for entry in entries if not self._holds_unchanged(entry)]

    def bucket_count(self, partition: bytes) -> int | None:
        """Return the bucket count that the partition was written with; None if it has no file."""
        for files in self._partitions.get(partition, {}).values():
            for entry in files.values():
                return entry.total_buckets
        return None

    def __iter__(self) -> Iterator[ManifestEntry]:
        """Iterate over every live entry."""
        for buckets in self._partitions.values():
            for files in buckets.values():
                yield from files.values()

    def __len__(self) -> int:
        """Return the number of live files."""
        return sum(len(files) for buckets in self._partitions.values() for files in buckets.values())

    def _holds_unchanged(self, entry: ManifestEntry) -> bool:
        live = self._partitions.get(entry.partition, {}).get(entry.bucket, {}).get(entry.file.identity)
        return live is not None and live.file.deletion_file == entry.file.deletion_file


def _marked(entry: ManifestEntry, deletion_files: Mapping[str, DeletionFile]) -> ManifestEntry:
    deletion_file = deletion_files.get(entry.file.file_name)
    return entry if deletion_file is None else replace(entry, file=replace(entry.file, deletion_file=deletion_file))
