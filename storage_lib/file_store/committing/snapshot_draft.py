"""Metadata of one commit, written before its snapshot names it: manifests, base list, delta list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from storage_lib.file_store.manifest.hash_index import HashIndexChange
from storage_lib.file_store.manifest.index_manifest import (
    NO_INDEXES,
    Bucket,
    IndexManifest,
    encode_index_manifest,
)
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry, cancel_out
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta, describe_manifest, encode_manifest
from storage_lib.file_store.manifest.manifest_list import encode_manifest_list
from storage_lib.file_store.manifest.manifest_merge import RUN_ENTRIES, ManifestMerge
from storage_lib.file_store.manifest.partition_bounds import PartitionBounds
from storage_lib.file_store.merge_tree.increment import BucketVectors
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.io.table_directory.table_paths import TablePaths


@dataclass(frozen=True, slots=True)
class Restored:
    """Snapshot whose content is restored, with the indexes of the restored files.

    ``shares_files``: the new snapshot may name the same files as ``snapshot``.
    """

    snapshot: Snapshot
    indexes: IndexManifest
    shares_files: bool


class SnapshotDraft:
    """Rebuilt for each base snapshot that the commit tries; files that do not depend on it are written only once.

    The manifest of the changes survives a lost race; the base list is rewritten, since it begins with the
    snapshot that won. ``discard`` deletes every file that the final snapshot does not name.
    """

    def __init__(
        self,
        *,
        manifests: ManifestDirectory,
        merge: ManifestMerge,
        bounds: PartitionBounds,
        new_name: Callable[[], str],
    ) -> None:
        self._manifests = manifests
        self._merge = merge
        self._bounds = bounds
        self._new_name = new_name
        self._written: set[str] = set()
        self._staged: dict[str, bytes] = {}
        self._changes: Sequence[ManifestEntry] | None = None
        self._delta: tuple[str, int, tuple[ManifestFileMeta, ...]] | None = None
        self._changelog: tuple[str, int, int] | None = None
        self._folds: list[tuple[tuple[str, ...], list[ManifestFileMeta]]] = []

    def upon(
        self,
        previous: Snapshot | None,
        changes: Sequence[ManifestEntry],
        template: Snapshot,
        *,
        restored: Restored | None = None,
        vectors: Mapping[Bucket, BucketVectors] | None = None,
        changelog: Sequence[ManifestEntry] = (),
        hash_indexes: Mapping[Bucket, HashIndexChange] | None = None,
    ) -> Snapshot:
        """Return the snapshot that follows ``previous`` with ``changes``; its lists are durable when this returns.

        ``template`` has identity, kind, schema and time; the id, lists and record counts are filled in here.
        ``restored`` is the snapshot whose content is restored, if any. A deleted file must not be added again next to
        its DELETE, so all manifests are folded for a restore, and if a file moves back to a level that it has left
        before, as it can in tables that an earlier release rolled back. ``vectors`` are the new deletion vectors and
        ``hash_indexes`` the hash index changes of some buckets, ``changelog`` the changelog files of ``changes``.

        Raises ``NotFoundError`` if the lists of ``previous`` are missing: it has expired, so a newer one exists.
        """
        delta_name, delta_size, _ = self._delta_list(changes)
        base = self._base_of(previous)
        base = self._folded(base, everything=restored is not None or self._have_left_before(base, changes))
        base_name, base_size = self._stage_list(base)
        if restored is not None:
            index_manifest = self._index_of_restored(restored)
        else:
            is_overwrite = template.commit_kind is CommitKind.OVERWRITE
            index_manifest = self._index_of(
                previous, changes, vectors or {}, hash_indexes or {}, is_overwrite=is_overwrite
            )
        changelog_list = self._changelog_list(changelog)
        self._manifests.write(self._staged)
        self._staged = {}
        delta_rows = sum(_signed_rows(entry) for entry in changes)
        return _filled_in(
            template,
            previous,
            lists=(base_name, base_size, delta_name, delta_size),
            delta_rows=delta_rows,
            restored=restored,
            index_manifest=index_manifest,
            changelog=changelog_list,
        )

    def discard(self, keep: Snapshot | None) -> None:
        """Delete the written files that are not part of ``keep``; all of them if None."""
        named: set[str] = set()
        if keep is not None:
            lists = lists_of(keep)
            named = {*lists, *(manifest.file_name for name in lists for manifest in self._manifests.read_list(name))}
            named |= set() if keep.index_manifest is None else {keep.index_manifest}
        self._manifests.delete(sorted(self._written - named))
        self._written &= named

    def _delta_list(self, changes: Sequence[ManifestEntry]) -> tuple[str, int, tuple[ManifestFileMeta, ...]]:
        if self._delta is None or self._changes != changes:
            metas = tuple(self._stage_run(changes))
            name, size = self._stage_list(metas)
            self._changes, self._delta = changes, (name, size, metas)
        return self._delta

    def _changelog_list(self, changelog: Sequence[ManifestEntry]) -> tuple[str, int, int] | None:
        """Return name and size of the changelog manifest list, and its row count; written only once per commit."""
        if self._changelog is None and changelog:
            rows = sum(entry.file.row_count for entry in changelog)
            self._changelog = (*self._stage_list(self._stage_run(changelog)), rows)
        return self._changelog

    def _base_of(self, previous: Snapshot | None) -> list[ManifestFileMeta]:
        if previous is None:
            return []
        lists = (previous.base_manifest_list, previous.delta_manifest_list)
        return [manifest for name in lists for manifest in self._manifests.read_list(name)]

    def _have_left_before(self, base: Sequence[ManifestFileMeta], changes: Sequence[ManifestEntry]) -> bool:
        """Return whether ``base`` has a DELETE of a moved file at the level that ``changes`` move it to."""
        deleted = {entry.file.file_name for entry in changes if entry.kind is FileKind.DELETE}
        moved = [entry for entry in changes if entry.kind is FileKind.ADD and entry.file.file_name in deleted]
        if not moved:
            return False
        identities = {entry.identity for entry in moved}
        highest = max(entry.file.level for entry in moved)
        lowest = min(entry.file.level for entry in moved)
        may_tell = [
            manifest
            for manifest in base
            if manifest.num_deleted_files
            and (manifest.min_level is None or manifest.min_level <= highest)
            and (manifest.max_level is None or manifest.max_level >= lowest)
        ]
        return any(
            entry.kind is FileKind.DELETE and entry.identity in identities
            for entries in self._manifests.read_manifests(may_tell)
            for entry in entries
        )

    def _index_of(
        self,
        previous: Snapshot | None,
        changes: Sequence[ManifestEntry],
        vectors: Mapping[Bucket, BucketVectors],
        hash_indexes: Mapping[Bucket, HashIndexChange],
        *,
        is_overwrite: bool,
    ) -> str | None:
        """Return the name of the index manifest after ``changes``; None if it has no records.

        It omits the deletion vectors of deleted files and the hash indexes of overwritten partitions.
        """
        name = None if previous is None else previous.index_manifest
        manifest = NO_INDEXES if name is None else self._manifests.read_index(name)
        after = manifest.without(_removed_by(changes))
        for bucket, each in vectors.items():
            after = after.with_vectors(bucket, each.index_file, each.size_bytes, each.ranges)
        if is_overwrite:
            after = after.without_hashes({entry.partition for entry in changes if entry.kind is FileKind.DELETE})
        if hash_indexes:
            after = after.with_hashes(hash_indexes)
        if after.records == manifest.records:
            return name
        if not after.records:
            return None
        return self._stage(TablePaths.new_index_manifest_name(self._new_name(), 0), encode_index_manifest(after))

    def _index_of_restored(self, restored: Restored) -> str | None:
        name = restored.snapshot.index_manifest
        if name is None:
            return None
        if restored.shares_files and restored.indexes.records == self._manifests.read_index(name).records:
            return name
        return self._stage(
            TablePaths.new_index_manifest_name(self._new_name(), 0), encode_index_manifest(restored.indexes)
        )

    def _folded(self, base: list[ManifestFileMeta], *, everything: bool) -> list[ManifestFileMeta]:
        """Return the base list with small manifests folded; a fold made for an earlier attempt is reused."""
        names = [manifest.file_name for manifest in base]
        for inputs, result in self._folds:
            start = names.index(inputs[0]) if inputs[0] in names else len(names)
            is_whole = len(inputs) == len(names)
            if tuple(names[start : start + len(inputs)]) == inputs and (is_whole or not everything):
                return [*base[:start], *result, *base[start + len(inputs) :]]
        chosen = range(len(base)) if everything else self._merge.choose(base)
        manifests = [base[index] for index in chosen]
        # Other writers' row tracking adds fields that this library would not write back.
        if not manifests or any(manifest.min_row_id is not None for manifest in manifests):
            return base
        read = self._manifests.read_manifests(manifests)
        result = self._stage_run(cancel_out([entry for entries in read for entry in entries]))
        self._folds.append((tuple(manifest.file_name for manifest in manifests), result))
        return [*base[: chosen.start], *result, *base[chosen.stop :]]

    def _stage_manifests(self, entries: Sequence[ManifestEntry]) -> list[ManifestFileMeta]:
        """Stage manifests of at most about the target size."""
        if not entries:
            return []
        data = encode_manifest(entries)
        if len(data) > self._merge.target_file_size and len(entries) > 1:
            parts = min(len(entries), -(-len(data) // self._merge.target_file_size))
            step = -(-len(entries) // parts)
            groups = [entries[start : start + step] for start in range(0, len(entries), step)]
            return [self._stage_manifest(group, encode_manifest(group)) for group in groups]
        return [self._stage_manifest(entries, data)]

    def _stage_run(self, entries: Sequence[ManifestEntry]) -> list[ManifestFileMeta]:
        """Stage manifests with disjoint partitions, so that a reader of one partition opens only one of them.

        Entries of one partition keep their order.
        """
        by_partition: dict[bytes, list[ManifestEntry]] = {}
        for entry in entries:
            by_partition.setdefault(entry.partition, []).append(entry)
        if len(by_partition) == 1 or len(entries) <= RUN_ENTRIES:
            return self._stage_manifests(entries)
        groups: list[list[ManifestEntry]] = [[]]
        for partition in sorted(by_partition, key=self._bounds.comparable):
            if len(groups[-1]) >= RUN_ENTRIES:
                groups.append([])
            groups[-1] += by_partition[partition]
        run = self._new_name()
        return [
            self._stage_manifest(group, encode_manifest(group), TablePaths.new_manifest_run_name(run, number))
            for number, group in enumerate(groups)
        ]

    def _stage_manifest(
        self, entries: Sequence[ManifestEntry], data: bytes, file_name: str | None = None
    ) -> ManifestFileMeta:
        name = self._stage(file_name or TablePaths.new_manifest_name(self._new_name(), 0), data)
        self._manifests.remember_manifest(name, entries)
        return describe_manifest(name, len(data), entries, self._bounds.of)

    def _stage_list(self, manifests: Sequence[ManifestFileMeta]) -> tuple[str, int]:
        data = encode_manifest_list(manifests)
        name = self._stage(TablePaths.new_manifest_list_name(self._new_name(), 0), data)
        self._manifests.remember_list(name, manifests)
        return name, len(data)

    def _stage(self, name: str, data: bytes) -> str:
        self._staged[name] = data
        self._written.add(name)
        return name


def lists_of(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the manifest lists that a snapshot names."""
    names = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
    return tuple(name for name in names if name is not None)


def _removed_by(changes: Sequence[ManifestEntry]) -> dict[Bucket, set[str]]:
    """Return the names of the deleted files by bucket, without files that only change their level."""
    deleted: dict[Bucket, set[str]] = {}
    for entry in changes:
        if entry.kind is FileKind.DELETE:
            deleted.setdefault((entry.partition, entry.bucket), set()).add(entry.file.file_name)
    for entry in changes:
        if entry.kind is FileKind.ADD:
            deleted.get((entry.partition, entry.bucket), set()).discard(entry.file.file_name)
    return deleted


def _signed_rows(entry: ManifestEntry) -> int:
    return entry.file.row_count if entry.kind is FileKind.ADD else -entry.file.row_count


def _filled_in(
    template: Snapshot,
    previous: Snapshot | None,
    *,
    lists: tuple[str, int, str, int],
    delta_rows: int,
    restored: Restored | None,
    index_manifest: str | None,
    changelog: tuple[str, int, int] | None,
) -> Snapshot:
    """Fill in the values carried over: row count, index manifest, watermark, statistics, row ids and time order."""
    base_name, base_size, delta_name, delta_size = lists
    changelog_name, changelog_size, changelog_rows = changelog or (None, None, None)
    # Statistics describe rows: a restore takes those of the restored snapshot, if their file may be shared.
    carried = None if previous is None else previous.statistics
    if restored is not None and restored.snapshot.statistics != carried:
        carried = restored.snapshot.statistics if restored.shares_files else None
    marks = [template.watermark, None if previous is None else previous.watermark]
    return replace(
        template,
        id=1 if previous is None else previous.id + 1,
        schema_id=template.schema_id if previous is None else max(template.schema_id, previous.schema_id),
        base_manifest_list=base_name,
        base_manifest_list_size=base_size,
        delta_manifest_list=delta_name,
        delta_manifest_list_size=delta_size,
        delta_record_count=delta_rows,
        changelog_manifest_list=changelog_name,
        changelog_manifest_list_size=changelog_size,
        changelog_record_count=changelog_rows,
        total_record_count=delta_rows + (0 if previous is None else previous.total_record_count),
        watermark=max((mark for mark in marks if mark is not None), default=None),
        time_millis=template.time_millis if previous is None else max(template.time_millis, previous.time_millis),
        index_manifest=index_manifest,
        statistics=template.statistics or carried,
        next_row_id=None if previous is None else previous.next_row_id,
    )
