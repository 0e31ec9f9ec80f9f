"""Changes of one append, read back from the files that it added.

Within one commit only the newest version of each key was kept, so this is the commit's net change.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import FileKind
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.split import Split
from storage_lib.file_store.store import FileStore


class SnapshotChanges:
    """Reads the changes of append snapshots while their files exist."""

    def __init__(self, file_store: FileStore) -> None:
        self._file_store = file_store

    def splits(self, snapshot: Snapshot) -> tuple[Split, ...]:
        """Return one split per (partition, bucket), with the level-0 files that the snapshot added, in order."""
        by_bucket: dict[tuple[bytes, int], list[DataFileMeta]] = {}
        for entry in self._file_store.scan.delta(snapshot):
            if entry.kind is FileKind.ADD and entry.file.level == 0:
                by_bucket.setdefault((entry.partition, entry.bucket), []).append(entry.file)
        return tuple(
            Split(
                snapshot_id=snapshot.id,
                partition=partition,
                bucket=bucket,
                files=tuple(sorted(files, key=lambda file: file.min_sequence_number)),
            )
            for (partition, bucket), files in sorted(by_bucket.items(), key=lambda item: item[0])
        )

    def buckets(self, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the buckets to which the snapshot added rows, ascending."""
        return tuple(sorted({split.bucket for split in self.splits(snapshot)}))

    def read(self, snapshot: Snapshot, *, bucket: int) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the rows (table columns) and kinds (int8) that the snapshot added to one bucket, of all partitions."""
        for split in self.splits(snapshot):
            if split.bucket == bucket:
                yield from self.read_split(split)

    def read_split(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield rows and kinds of one split of ``splits``, file by file."""
        return self._file_store.read.changes(split)
