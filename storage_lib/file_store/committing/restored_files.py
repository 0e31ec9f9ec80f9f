"""Changes that turn a table's live files into those of another snapshot, such that every engine sees them.

Readers of the format take an ADD for deleted if any manifest of the snapshot has a DELETE of the same identity, in
any order. A restore therefore folds all manifests, after which they hold no DELETE but its own.
One of those may still match a later ADD of the same identity:

    snapshot 1   ADD x level 0
    snapshot 2   DELETE x level 0, ADD x level 5    an engine moved x up without rewriting it
    snapshot 3   DELETE x level 5, ADD x level 0    restored snapshot 1
    snapshot 4   DELETE x level 0, ADD x level 5    the engine does the same again: x is taken for deleted

A file whose own name the restore deletes is therefore restored as a copy under another name. All others
are added again unchanged, at the cost of metadata only, if no other engine expires snapshots: their expiry deletes
the files that expired snapshots removed, without checking whether they were added again. If another engine may expire
snapshots, all restored files and their indexes are copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from storage_lib.file_store.committing.commit_changes import deleted
from storage_lib.file_store.committing.file_copies import FileCopies
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.manifest.index_manifest import Bucket, IndexManifest
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.planning.live_files import LiveFiles
from storage_lib.file_store.snapshot.snapshot import Snapshot


class RestoredFiles:
    """Computes the changes of one restore for each snapshot that it tries to follow; attempts share the copies."""

    def __init__(
        self,
        wanted: LiveFiles,
        *,
        indexes: IndexManifest,
        copies: FileCopies,
        indexes_of: Callable[[Snapshot | None], IndexManifest],
        others_expire: bool,
    ) -> None:
        """``indexes`` are those of the ``wanted`` files. ``others_expire``: other engines may expire snapshots."""
        self._wanted = wanted
        self._indexes = indexes
        self._copies = copies
        self._indexes_of = indexes_of
        self.others_expire = others_expire
        self._changes: Sequence[ManifestEntry] = ()
        self._indexes_now = indexes

    @property
    def indexes(self) -> IndexManifest:
        """Content of the index manifest after the most recent ``upon``."""
        return self._indexes_now

    def differ(self, live: LiveFiles) -> bool:
        """Return whether the wanted rows may differ from the live ones: by files, or by rows marked as deleted."""
        return bool(self._wanted.missing(live)) or bool(live.changed(self._wanted))

    def upon(self, latest: Snapshot | None, live: LiveFiles) -> Sequence[ManifestEntry]:
        """Return the changes that turn ``live``, the files of ``latest``, into the wanted ones; all are durable.

        Raises as ``FileCopies.of``.
        """
        removed, added = self._wanted.missing(live), live.missing(self._wanted)
        originals = added if self.others_expire else those_to_copy(added, removed)
        copies = dict(zip((each.identity for each in originals), self._copies.of(originals), strict=True))
        names: dict[Bucket, dict[str, str]] = {}
        for each in originals:
            names.setdefault((each.partition, each.bucket), {})[each.file.file_name] = copies[
                each.identity
            ].file.file_name
        indexes = self._indexes.with_names(names)
        if self.others_expire:
            there = self._indexes_of(latest).file_names
            indexes = self._copies.of_indexes(indexes, but=there)
        self._indexes_now = indexes
        self._changes = (
            *(deleted(entry) for entry in removed),
            *(copies.get(each.identity, each) for each in added),
        )
        return self._changes

    def tidy(self, *, is_committed: bool) -> None:
        """Delete the copies that no snapshot names: all of them, or if committed, those of lost attempts."""
        if is_committed:
            self._copies.discard(but=self._changes, indexes=self._indexes_now)
        else:
            self._copies.discard()


def those_to_copy(added: Sequence[ManifestEntry], removed: Sequence[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries to add that another engine may later give an identity that ``removed`` deletes.

    Engines move files up and replace their indexes, without a new name. A file that the restore only moves up never
    returns to its former identity.
    """
    deletions = {(entry.partition, entry.bucket, entry.file.file_name): entry.file for entry in removed}
    pairs = ((entry, deletions.get((entry.partition, entry.bucket, entry.file.file_name))) for entry in added)
    return [entry for entry, other in pairs if other is not None and not _only_moves_up(other, entry.file)]


def _only_moves_up(old: DataFileMeta, new: DataFileMeta) -> bool:
    return old.level < new.level and old.identity[1:] == new.identity[1:]
