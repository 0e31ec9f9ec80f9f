"""The data files that make up a table at one snapshot, by bucket; a value: applying changes gives a new one.

Partitions and buckets that a commit doesn't touch are shared with the value before it, so following a long history
costs no more than its changes.
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
    """ADD entries by partition (serialized BinaryRow) and bucket, in commit order within each bucket."""

    __slots__ = ("_partitions",)

    def __init__(self, partitions: Mapping[bytes, _Buckets]) -> None:
        self._partitions = partitions

    @classmethod
    def empty(cls) -> LiveFiles:
        """Of a table without a commit."""
        return cls({})

    def apply(self, changes: Iterable[ManifestEntry]) -> LiveFiles:
        """These files after ``changes``; a DELETE of a file that is not here is passed over."""
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
        """These files, each with where its deletion vector is, if it has one."""
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
        """The buckets of a partition that have at least one file."""
        return self._partitions.get(partition, {}).keys()

    def of(self, partition: bytes, bucket: int) -> Iterable[ManifestEntry]:
        """The entries of one bucket, oldest commit first."""
        return self._partitions.get(partition, {}).get(bucket, {}).values()

    def holds(self, entry: ManifestEntry) -> bool:
        """Whether exactly this file is live: same bucket, same name, same level."""
        return entry.file.identity in self._partitions.get(entry.partition, {}).get(entry.bucket, {})

    def held(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Those of ``entries`` whose exact file is live."""
        return [entry for entry in entries if self.holds(entry)]

    def missing(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Those of ``entries`` whose exact file is not live."""
        return [entry for entry in entries if not self.holds(entry)]

    def changed(self, entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
        """Those of ``entries`` whose exact file is not live, or of which other rows are marked as deleted."""
        return [entry for entry in entries if not self._holds_unchanged(entry)]

    def bucket_count(self, partition: bytes) -> int | None:
        """How many buckets the partition was written with; None if it has no file."""
        for files in self._partitions.get(partition, {}).values():
            for entry in files.values():
                return entry.total_buckets
        return None

    def __iter__(self) -> Iterator[ManifestEntry]:
        """Every live entry."""
        for buckets in self._partitions.values():
            for files in buckets.values():
                yield from files.values()

    def __len__(self) -> int:
        """The number of live files."""
        return sum(len(files) for buckets in self._partitions.values() for files in buckets.values())

    def _holds_unchanged(self, entry: ManifestEntry) -> bool:
        live = self._partitions.get(entry.partition, {}).get(entry.bucket, {}).get(entry.file.identity)
        return live is not None and live.file.deletion_file == entry.file.deletion_file


def _marked(entry: ManifestEntry, deletion_files: Mapping[str, DeletionFile]) -> ManifestEntry:
    deletion_file = deletion_files.get(entry.file.file_name)
    return entry if deletion_file is None else replace(entry, file=replace(entry.file, deletion_file=deletion_file))
