"""Plan of a read: live files of one snapshot that may have matching rows, and their division into splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.kind.file_grouping import FileGrouping
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class DividedPlan:
    """A plan in two parts, divided by all files of each bucket, so that the same snapshot is always divided alike.

    ``unmerged``: files whose rows need no merge (``FileGrouping.unmerged``); ``merged``: all others.
    """

    unmerged: Plan
    merged: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Live files to read: ``entries`` are ADDs by partition and bucket; ``snapshot`` is None without a commit."""

    snapshot: Snapshot | None
    entries: tuple[ManifestEntry, ...]
    grouping: FileGrouping = field(repr=False)

    @property
    def row_count(self) -> int:
        """Number of physical rows: an upper bound of the rows that a merge read yields."""
        return sum(entry.file.row_count for entry in self.entries)

    @property
    def size_bytes(self) -> int:
        """Total file size on storage, in bytes."""
        return sum(entry.file.file_size for entry in self.entries)

    def where(self, wanted: Callable[[ManifestEntry], bool]) -> Plan:
        """Return the plan with only the wanted entries: whole groups, or files that need no merge."""
        return replace(self, entries=tuple(entry for entry in self.entries if wanted(entry)))

    def by_bucket(self) -> Iterator[tuple[bytes, int, tuple[DataFileMeta, ...]]]:
        """Yield partition, bucket and files of every bucket, in order."""
        for (partition, bucket), entries in groupby(self.entries, lambda entry: (entry.partition, entry.bucket)):
            yield partition, bucket, tuple(entry.file for entry in entries)

    def splits(self, target_size_bytes: int | None = None) -> tuple[Split, ...]:
        """Return one split per bucket, or several of about the target size, cut only between groups that merge alone.

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
        for together in self.grouping.groups(files):
            size_together = sum(file.file_size for file in together)
            if group and size + size_together > target_size_bytes:
                yield tuple(group)
                group, size = [], 0
            group += together
            size += size_together
        yield tuple(group)
