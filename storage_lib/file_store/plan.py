"""What to read of one snapshot: the live files that may hold matching rows, and how to share them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from storage_lib.file_store.data_file.comparable_key import ComparableKey
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.merge_tree.interval_partition import interval_partition
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``entries`` are ADDs, ordered by partition and bucket; ``snapshot`` is None for a table without a commit."""

    snapshot: Snapshot | None
    entries: tuple[ManifestEntry, ...]
    comparable_key: Callable[[bytes], ComparableKey] = field(repr=False)

    @property
    def row_count(self) -> int:
        """Physical rows: an upper bound of what a merge read yields."""
        return sum(entry.file.row_count for entry in self.entries)

    @property
    def size_bytes(self) -> int:
        """Bytes on storage."""
        return sum(entry.file.file_size for entry in self.entries)

    def by_bucket(self) -> Iterator[tuple[bytes, int, tuple[DataFileMeta, ...]]]:
        """Partition, bucket and files of every bucket, in order."""
        for (partition, bucket), entries in groupby(self.entries, lambda entry: (entry.partition, entry.bucket)):
            yield partition, bucket, tuple(entry.file for entry in entries)

    def splits(self, target_size_bytes: int | None = None) -> tuple[Split, ...]:
        """One split per bucket, or several of about the target size, cut where no key is on both sides.

        Their order is the same for every plan of a snapshot with the same filters.
        """
        if self.snapshot is None:
            return ()
        return tuple(
            Split(snapshot_id=self.snapshot.id, partition=partition, bucket=bucket, files=group)
            for partition, bucket, files in self.by_bucket()
            for group in self._groups(files, target_size_bytes)
        )

    def _groups(
        self, files: Sequence[DataFileMeta], target_size_bytes: int | None
    ) -> Iterator[tuple[DataFileMeta, ...]]:
        if target_size_bytes is None or sum(file.file_size for file in files) <= target_size_bytes:
            yield tuple(files)
            return
        group: list[DataFileMeta] = []
        size = 0
        for section in interval_partition(files, self.comparable_key):
            section_files = [file for run in section for file in run.files]
            section_size = sum(file.file_size for file in section_files)
            if group and size + section_size > target_size_bytes:
                yield tuple(group)
                group, size = [], 0
            group += section_files
            size += section_size
        yield tuple(group)
