"""Which masks a snapshot changes: compares its live files with the data files that the view has shown so far.

Usually the view shows the snapshot before; then the deltas tell which buckets changed. A view that leaves out snapshots
whose rows are not merged follows by several deltas at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyroaring import BitMap64

from storage_lib.errors import SnapshotExpiredError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.merge_tree.key_value_table import KeyValueTable
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.mask.hidden_rows import ChangedBucket, hidden_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """Live entries of a snapshot by path, and the paths that are new.

    ``since`` are the snapshots after the one that the view shows, this one the last; None if they are not known.
    ``mask_before`` returns the mask that the view has of a file's path; None if it can't be taken over.
    """

    live: Mapping[str, ManifestEntry]
    added: frozenset[str]
    since: Sequence[Snapshot] | None
    mask_before: Callable[[str], BitMap64 | None]


def stores_rows(store: FileStore, live: Iterable[ManifestEntry]) -> bool:
    """Return whether each row of a snapshot is in one of its live data files as it is."""
    kind = store.kind
    if not isinstance(kind, KeyValueTable) or not kind.combines:
        return True
    buckets: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
    for entry in live:
        buckets[entry.partition, entry.bucket].append(entry.file)
    return all(kind.stores_rows(files) for files in buckets.values())


def next_masks(store: FileStore, change: FileChange) -> Iterator[tuple[str, BitMap64]]:
    """Yield path and mask of each live data file whose mask may have changed.

    Without ``since``, all files count as new. Raises ``StorageError`` if a data file can't be read.
    """
    kind = store.kind
    if not isinstance(kind, KeyValueTable):
        return
    for changed, paths in _changed_buckets(store, change, has_vectors=kind.has_deletion_vectors):
        found = hidden_rows(store.read, changed, groups_of=kind.groups, comparable_key=kind.layout.comparable_key)
        for file_name, mask in found:
            yield paths[file_name], mask


def _changed_buckets(
    store: FileStore, change: FileChange, *, has_vectors: bool
) -> Iterator[tuple[ChangedBucket, Mapping[str, str]]]:
    buckets: dict[tuple[bytes, int], dict[str, ManifestEntry]] = defaultdict(dict)
    for path, entry in change.live.items():
        buckets[entry.partition, entry.bucket][path] = entry
    delta = _delta(store, change.since)
    removed: dict[tuple[bytes, int], list[DataFileMeta]] = defaultdict(list)
    touched = {(entry.partition, entry.bucket) for entry in delta or ()}
    for entry in delta or ():
        if entry.kind is FileKind.DELETE and store.path_of(entry) not in change.live:
            removed[entry.partition, entry.bucket].append(entry.file)
    # A deletion vector belongs to a snapshot, not to a file: compactions change those of their buckets, and a rollback
    # those of any.
    all_marks = has_vectors and any(each.commit_kind is CommitKind.OVERWRITE for each in change.since or ())
    for (partition, bucket), entries in buckets.items():
        place = (partition, bucket)
        paths = {entry.file.file_name: path for path, entry in entries.items()}
        changed = ChangedBucket(
            partition=partition,
            bucket=bucket,
            files=[entry.file for entry in entries.values()],
            added={entry.file.file_name for path, entry in entries.items() if path in change.added},
            removed=removed[place],
            is_whole=delta is None or all_marks or (has_vectors and place in touched),
            mask_before=partial(_mask_of, change, paths),
        )
        if changed.added or changed.removed or changed.is_whole:
            yield changed, paths


def _mask_of(change: FileChange, paths: Mapping[str, str], file_name: str) -> BitMap64 | None:
    return change.mask_before(paths[file_name])


def _delta(store: FileStore, since: Sequence[Snapshot] | None) -> list[ManifestEntry] | None:
    if since is None:
        return None
    try:
        return [entry for each in since for entry in store.scan.delta(each)]
    except SnapshotExpiredError:
        return None
