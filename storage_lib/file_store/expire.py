"""Drops old snapshots and the files only they need; data that the newest snapshot shows never expires."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.file_store.data_file_paths import DataFilePaths
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_paths import TablePaths


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireResult:
    """What an expiry removed; ``earliest_id`` is the oldest snapshot kept, None for a table without a commit."""

    snapshot_count: int = 0
    data_file_count: int = 0
    manifest_count: int = 0
    earliest_id: int | None = None


class FileStoreExpire:
    """Expires the oldest snapshots, never one in the middle.

    1. Choose the first snapshot to keep, F. Tags keep their own files, consumers everything they have yet to read.
    2. Write F into EARLIEST: from now on everything below counts as expired, whatever files are still there.
    3. Delete the data files that snapshots up to F took out, unless F or a tag has them.
    4. Delete the manifests and lists that only expired snapshots name.
    5. Delete the expired snapshot files, oldest first. While one is there its work may be unfinished: so a crash
       anywhere is finished by the next run, and never takes a file from a snapshot that still counts.
    """

    def __init__(
        self,
        *,
        file_io: FileIO,
        paths: TablePaths,
        snapshots: SnapshotHistory,
        manifests: ManifestDirectory,
        data_files: DataFilePaths,
    ) -> None:
        self._file_io = file_io
        self._paths = paths
        self._snapshots = snapshots
        self._manifests = manifests
        self._data_files = data_files

    def expire(
        self,
        *,
        retain_min: int = 1,
        retain_max: int | None = None,
        older_than_millis: int | None = None,
        snapshot_count_max: int | None = None,
    ) -> ExpireResult:
        """Expire snapshots made before ``older_than_millis`` (epoch), and all beyond the newest ``retain_max``.

        The newest ``retain_min`` stay in any case, and so do those that a consumer has yet to read.
        ``snapshot_count_max`` bounds the work of one run. Without age and ``retain_max`` nothing new is expired, but
        what an interrupted run left is cleaned up. Raises ``InvalidInputError`` for counts below 1.
        """
        for name, count in (("retain_min", retain_min), ("retain_max", retain_max)):
            if count is not None and count < 1:
                message = f"{name} is {count}, but at least the newest snapshot has to stay: give 1 or more"
                raise InvalidInputError(message)
        latest_id, earliest_id = self._snapshots.latest_id(), self._snapshots.earliest_id()
        if latest_id is None or earliest_id is None:
            return ExpireResult()
        first_kept = self._first_kept(
            range(earliest_id, latest_id + 1), retain_min, retain_max or latest_id, older_than_millis
        )
        if snapshot_count_max is not None:
            first_kept = min(first_kept, earliest_id + snapshot_count_max)
        return self._expire_below(first_kept)

    def _first_kept(self, ids: range, retain_min: int, retain_max: int, older_than_millis: int | None) -> int:
        newest = ids[-1]
        stop = max(ids[0], min(newest + 1 - retain_min, *self._consumers(), newest))
        first = max(ids[0], newest + 1 - max(retain_min, retain_max))
        while first < stop and older_than_millis is not None:
            if self._snapshots.load(first).time_millis >= older_than_millis:
                break
            first += 1
        return min(first, stop)

    def _expire_below(self, first_kept: int) -> ExpireResult:
        expired_ids = self._snapshots.expire_below(first_kept)
        loaded = [self._snapshots.load_expired(snapshot_id) for snapshot_id in expired_ids]
        expired = [snapshot for snapshot in loaded if snapshot is not None]
        if not expired:
            return ExpireResult(earliest_id=first_kept)
        kept = [self._snapshots.load(first_kept), *self._tagged()]
        data_files = self._data_files_to_delete(expired, kept)
        for path in data_files:
            self._file_io.delete(path)
        # Manifests before the lists that name them, so that an interrupted run finds them again.
        expired_manifests, expired_lists = self._metadata_of(expired, strict=False)
        kept_manifests, kept_lists = self._metadata_of(kept, strict=True)
        self._manifests.delete(sorted(expired_manifests - kept_manifests))
        self._manifests.delete(sorted(expired_lists - kept_lists))
        for snapshot in expired:
            self._snapshots.delete_expired(snapshot.id)
        return ExpireResult(
            snapshot_count=len(expired),
            data_file_count=len(data_files),
            manifest_count=len(expired_manifests - kept_manifests) + len(expired_lists - kept_lists),
            earliest_id=first_kept,
        )

    def _data_files_to_delete(self, expired: Sequence[Snapshot], kept: Sequence[Snapshot]) -> list[str]:
        """Paths of what the deltas after the first expired snapshot, up to the first kept one, took out.

        A file moved to another level is taken out and put in again: what is kept is told by path, not by identity.
        """
        taken_out: set[str] = set()
        for snapshot in expired:
            taken_out |= self._paths_in(snapshot.delta_manifest_list, FileKind.DELETE, strict=False)
            if snapshot.changelog_manifest_list is not None:
                taken_out |= self._paths_in(snapshot.changelog_manifest_list, FileKind.ADD, strict=False)
        taken_out |= self._paths_in(kept[0].delta_manifest_list, FileKind.DELETE, strict=True)
        for snapshot in kept if taken_out else ():
            taken_out -= self._live_paths(snapshot)
        return sorted(taken_out)

    def _paths_in(self, list_name: str, kind: FileKind, *, strict: bool) -> set[str]:
        entries = self._entries(list_name, strict=strict)
        return {path for entry in entries if entry.kind is kind for path in self._data_files.of(entry)}

    def _live_paths(self, snapshot: Snapshot) -> set[str]:
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        entries = [entry for name in lists for entry in self._entries(name, strict=True)]
        gone = {entry.identity for entry in entries if entry.kind is FileKind.DELETE}
        return {path for entry in entries if entry.identity not in gone for path in self._data_files.of(entry)}

    def _entries(self, list_name: str, *, strict: bool) -> Iterator[ManifestEntry]:
        """Entries of a list's manifests; of expired snapshots some may be gone since an interrupted run."""
        for manifest in self._list(list_name, strict=strict):
            try:
                yield from self._manifests.read_manifest(manifest)
            except NotFoundError:
                if strict:
                    raise

    def _list(self, name: str, *, strict: bool) -> tuple[ManifestFileMeta, ...]:
        try:
            return self._manifests.read_list(name)
        except NotFoundError:
            if strict:
                raise
            return ()

    def _metadata_of(self, snapshots: Iterable[Snapshot], *, strict: bool) -> tuple[set[str], set[str]]:
        """Every file of the manifest directory that these snapshots name: manifests, and lists of them."""
        manifests: set[str] = set()
        lists: set[str] = set()
        for snapshot in snapshots:
            names = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
            own = {name for name in names if name is not None}
            lists |= own
            manifests |= {each.file_name for name in own for each in self._list(name, strict=strict)}
            if snapshot.index_manifest is not None:
                lists.add(snapshot.index_manifest)
        return manifests, lists

    def _tagged(self) -> list[Snapshot]:
        """The snapshots that tags keep; a tag is a snapshot's JSON with a few more keys."""
        directory = self._paths.tag_directory
        names = sorted(entry.name for entry in self._file_io.list_directory(directory) if entry.name.startswith("tag-"))
        return [decode_snapshot(self._file_io.read_bytes(path), path) for path in (f"{directory}/{n}" for n in names)]

    def _consumers(self) -> list[int]:
        """The next snapshot that each consumer is going to read (docs/format.md, 1.16)."""
        directory = self._paths.consumer_directory
        names = sorted(e.name for e in self._file_io.list_directory(directory) if e.name.startswith("consumer-"))
        return [int(json.loads(self._file_io.read_bytes(f"{directory}/{name}"))["nextSnapshot"]) for name in names]
