"""Refuses rows that were numbered before others restored rows with greater numbers, which would hide them.

A writer numbers its rows after those of the snapshot it begins with. A rollback, and a branch that is published, bring
back files of other numbers: an acknowledged row would be older than the one that it replaces.
"""

from __future__ import annotations

from collections.abc import Sequence

from storage_lib.errors import CommitConflictError, SnapshotExpiredError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.committing.commit_changes import appended_by
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.store import FileStore


def check_newer_than_restored(
    table: str, file_store: FileStore, files: Sequence[CommitMessage], *, base_id: int, latest: Snapshot | None
) -> None:
    """Raise ``CommitConflictError`` if a snapshot after ``base_id`` restored rows with the numbers of appended ones.

    Snapshots that have expired since are not looked at: a load that takes longer than they are kept would never end.
    """
    lowest: dict[tuple[bytes, int], int] = {}
    for entry in appended_by(files):
        if entry.kind is FileKind.ADD:
            place = entry.partition, entry.bucket
            lowest[place] = min(lowest.get(place, entry.file.min_sequence_number), entry.file.min_sequence_number)
    if not lowest:
        return
    for snapshot_id, snapshot in file_store.snapshots.since(base_id, None if latest is None else latest.id):
        if snapshot is None or snapshot.commit_kind is not CommitKind.OVERWRITE:
            continue
        if any(_hides(entry, lowest) for entry in _delta(file_store, snapshot)):
            message = (
                f"table {table}: snapshot {snapshot_id} restored rows. This commit's rows are numbered after those of "
                f"snapshot {base_id}, so they would be taken for older ones. Nothing became visible; run it again"
            )
            raise CommitConflictError(message)


def _delta(file_store: FileStore, snapshot: Snapshot) -> Sequence[ManifestEntry]:
    try:
        return file_store.scan.delta(snapshot)
    except SnapshotExpiredError:
        return ()


def _hides(entry: ManifestEntry, lowest: dict[tuple[bytes, int], int]) -> bool:
    number = lowest.get((entry.partition, entry.bucket))
    return number is not None and entry.kind is FileKind.ADD and entry.file.max_sequence_number >= number
