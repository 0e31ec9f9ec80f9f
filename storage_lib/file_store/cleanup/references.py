"""Files that the snapshots, tags and branches of a table reference; these must never be deleted.

A history (the main branch, or another) that starts at its earliest snapshot F needs

    live(F)                    the live files of F
    ADD of every later delta   files added since, or restored (by a rollback or fast-forward)
    live(T) of every tag       however old

Tags are read before snapshots. A process that creates a tag creates it first and reads EARLIEST afterwards; a process
that deletes files moves EARLIEST first and reads the tags afterwards. So at least one of the two sees the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.manifest.data_file_paths import DataFilePaths
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.manifest.manifest_entry import FileKind, ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta
from storage_lib.file_store.rejected.rejected_directory import RejectedDirectory
from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
from storage_lib.file_store.snapshot.branch_directory import BranchDirectory
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.io.table_directory.table_paths import TablePaths


@dataclass(slots=True)
class Files:
    """Paths of data files with their extra files, of manifests, and of the files that list manifests."""

    data: set[str] = field(default_factory=set)
    manifests: set[str] = field(default_factory=set)
    lists: set[str] = field(default_factory=set)

    def __ior__(self, other: Files) -> Self:
        """Add all of ``other``."""
        self.data |= other.data
        self.manifests |= other.manifests
        self.lists |= other.lists
        return self

    def __sub__(self, other: Files) -> Files:
        """Return these files without those of ``other``."""
        return Files(self.data - other.data, self.manifests - other.manifests, self.lists - other.lists)

    def in_order(self) -> list[str]:
        """Return data files, manifests, then lists: an interrupted deletion is resumed from the remaining files."""
        return [*sorted(self.data), *sorted(self.manifests), *sorted(self.lists)]


class FileReferences:
    """Reads metadata only. ``paths`` are those of the branch whose files may be deleted."""

    def __init__(
        self,
        *,
        paths: TablePaths,
        manifests: ManifestDirectory,
        data_files: DataFilePaths,
        branches: BranchDirectory,
        rejected: RejectedDirectory,
        writes_changelog: bool,
    ) -> None:
        """``writes_changelog``: streams of other engines read changelog files, not appended rows."""
        self._writes_changelog = writes_changelog
        self.root = paths.root
        self._paths = paths
        self._manifests = manifests
        self._data_files = data_files
        self._branches = branches
        self._rejected = rejected

    def of_table(self) -> Files:
        """Return the files of all snapshots, tags and branches, including expired snapshots whose files still exist."""
        needed = Files()
        for branch in self._branches.all_names():
            history = self._branches.history(branch)
            needed |= self._of_tags(branch)
            needed |= self._of_moving_history(branch)
            earliest_id = history.earliest_id()
            for snapshot_id in history.ids():
                if earliest_id is not None and snapshot_id < earliest_id:
                    expired = history.load_expired(snapshot_id)
                    needed |= Files() if expired is None else self.all_of(expired)
            for changelog in self._branches.changelogs(branch):
                needed |= self.all_of(changelog)
        return needed

    def of_others(self, *, but_changelogs: bool = False) -> Files:
        """Return the files of all tags, including this branch's, and of the snapshots of other branches.

        Long-lived changelogs of all branches are included; ``but_changelogs`` excludes those of this branch.
        """
        needed = Files()
        for branch in self._branches.all_names():
            needed |= self._of_tags(branch)
            if not but_changelogs or branch != self._paths.branch:
                needed |= self.of_changelogs(self._branches.changelogs(branch))
            if branch != self._paths.branch:
                needed |= self._of_moving_history(branch)
        return needed

    def of_changelogs(self, changelogs: Iterable[Snapshot]) -> Files:
        """Return the files of retained changelogs: changelog files, or the added files if there are none.

        Other engines delete the rest, so missing files are skipped.
        """
        needed = Files()
        for changelog in changelogs:
            of_rows = not self._writes_changelog and changelog.commit_kind is CommitKind.APPEND
            name = changelog.delta_manifest_list if of_rows else changelog.changelog_manifest_list
            if name is None:
                continue
            needed.lists.add(self._paths.manifest_path(name))
            manifests = self._list(name, strict=False)
            needed.manifests.update({self._paths.manifest_path(each.file_name) for each in manifests})
            needed.data.update(self.paths_in(name, FileKind.ADD, strict=False))
        return needed

    def of_branch(self, branch: str) -> Files:
        """Return the files that one branch and its tags need."""
        needed = self._of_tags(branch)
        needed |= self._of_moving_history(branch)
        return needed

    def of_own(self, history: SnapshotHistory, first_id: int | None = None) -> Files:
        """Return the older files that the snapshots of this branch from ``first_id`` on (None: all) need.

        Appends never add such files; only an overwrite can restore one.
        """
        if first_id is None:
            return self._of_moving_history(self._paths.branch, history, only=CommitKind.OVERWRITE)
        return self._of_history(history, first_id, only=CommitKind.OVERWRITE)

    def of_own_whole(self, history: SnapshotHistory) -> Files:
        """Return all files that the snapshots of this branch need."""
        return self._of_moving_history(self._paths.branch, history)

    def of_snapshot(self, snapshot: Snapshot) -> Files:
        """Return live files and metadata of one snapshot. Raises ``NotFoundError`` if a metadata file is missing."""
        needed = self.metadata_of(snapshot)
        needed.data.update(self.live_paths(snapshot))
        return needed

    def all_of(self, snapshot: Snapshot) -> Files:
        """Return all files named by a snapshot, some of which may be missing: added, deleted, changelog."""
        named = self.metadata_of(snapshot, strict=False)
        for name in self._lists_of(snapshot):
            for entry in self.entries(name, strict=False):
                named.data.update(self._data_files.of(entry))
        return named

    def metadata_of(self, snapshot: Snapshot, *, strict: bool = True) -> Files:
        """Return manifests, lists, indexes, statistics and rejected records."""
        files = Files(lists={self._paths.manifest_path(name) for name in self._lists_of(snapshot)})
        for name in self._lists_of(snapshot):
            manifests = self._list(name, strict=strict and name != snapshot.changelog_manifest_list)
            files.manifests.update(self._paths.manifest_path(each.file_name) for each in manifests)
        if snapshot.index_manifest is not None:
            files.lists.add(self._paths.manifest_path(snapshot.index_manifest))
            files.data.update(self._index_files(snapshot.index_manifest, strict=strict))
        if snapshot.statistics is not None:
            files.data.add(self._paths.statistics_path(snapshot.statistics))
        pointer = RejectedPointer.of_properties(snapshot.properties, snapshot.origin)
        if pointer is not None:
            files |= self._of_rejected(pointer, strict=strict)
        return files

    def paths_in(self, list_name: str, kind: FileKind, *, strict: bool) -> set[str]:
        """Return the data files that the manifests of a list add, or delete."""
        entries = self.entries(list_name, strict=strict)
        return {path for entry in entries if entry.kind is kind for path in self._data_files.of(entry)}

    def live_paths(self, snapshot: Snapshot) -> set[str]:
        """Return the live data files of a snapshot, and those of its changelog."""
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        entries = [entry for name in lists for entry in self.entries(name, strict=True)]
        deleted = {entry.identity for entry in entries if entry.kind is FileKind.DELETE}
        live = {path for entry in entries if entry.identity not in deleted for path in self._data_files.of(entry)}
        return live | self._changelog_paths(snapshot)

    def entries(self, list_name: str, *, strict: bool) -> Iterator[ManifestEntry]:
        """Yield entries of a list's manifests; without ``strict`` missing files are skipped."""
        for manifest in self._list(list_name, strict=strict):
            try:
                yield from self._manifests.read_manifest(manifest)
            except NotFoundError:
                if strict:
                    raise

    def _of_moving_history(
        self, branch: str, history: SnapshotHistory | None = None, *, only: CommitKind | None = None
    ) -> Files:
        """Return the files that a branch needs; snapshots that expire or are deleted during the call are skipped."""
        history = history or self._branches.history(branch)
        while (earliest_id := history.earliest_id()) is not None:
            try:
                return self._of_history(history, earliest_id, only=only)
            except (NotFoundError, SnapshotExpiredError):
                if not self._branches.exists(branch):
                    break
                if history.earliest_id() == earliest_id:
                    raise
        return Files()

    def _of_history(self, history: SnapshotHistory, earliest_id: int, *, only: CommitKind | None = None) -> Files:
        """Return the files of a history's snapshots; later deltas ``only`` of one kind of commit, if given."""
        latest_id = history.latest_id()
        needed = Files()
        if latest_id is None:
            return needed
        snapshots = history.load_all(range(earliest_id, latest_id + 1))
        for snapshot in snapshots:
            if snapshot.id == earliest_id:
                needed |= self.of_snapshot(snapshot)
            elif only is None or snapshot.commit_kind is only:
                needed |= self.metadata_of(snapshot)
                needed.data.update(self.paths_in(snapshot.delta_manifest_list, FileKind.ADD, strict=True))
                needed.data.update(self._changelog_paths(snapshot))
        needed |= self._carried_by(snapshots)
        return needed

    def _of_tags(self, branch: str) -> Files:
        needed = Files()
        for tag in self._branches.tags(branch).load_all():
            needed |= self.of_snapshot(tag.snapshot)
        return needed

    def _carried_by(self, snapshots: Iterable[Snapshot]) -> Files:
        """Return metadata other than manifests that snapshots share with earlier ones, and that each names again."""
        indexes = {each.index_manifest for each in snapshots if each.index_manifest is not None}
        statistics = {each.statistics for each in snapshots if each.statistics is not None}
        files = Files(data={self._paths.statistics_path(name) for name in statistics})
        for name in indexes:
            files.lists.add(self._paths.manifest_path(name))
            files.data.update(self._index_files(name, strict=True))
        pointers = {RejectedPointer.of_properties(each.properties, each.origin) for each in snapshots}
        for pointer in pointers:
            files |= Files() if pointer is None else self._of_rejected(pointer, strict=True)
        return files

    def _of_rejected(self, pointer: RejectedPointer, *, strict: bool) -> Files:
        try:
            files = self._rejected.files_of(pointer)
        except NotFoundError:
            if strict:
                raise
            files = ()
        return Files(
            data={self._paths.rejected_path(each.name) for each in files},
            lists={self._paths.rejected_path(pointer.list_name)},
        )

    def _changelog_paths(self, snapshot: Snapshot) -> set[str]:
        if snapshot.changelog_manifest_list is None:
            return set()
        # Other engines delete the changelog of an expired snapshot, even if a tag keeps its other files.
        return self.paths_in(snapshot.changelog_manifest_list, FileKind.ADD, strict=False)

    def _index_files(self, name: str, *, strict: bool) -> set[str]:
        try:
            return {self._paths.index_path(each) for each in self._manifests.index_file_names(name)}
        except NotFoundError:
            if strict:
                raise
            return set()

    def _list(self, name: str, *, strict: bool) -> tuple[ManifestFileMeta, ...]:
        try:
            return self._manifests.read_list(name)
        except NotFoundError:
            if strict:
                raise
            return ()

    def _lists_of(self, snapshot: Snapshot) -> Iterable[str]:
        names = (snapshot.base_manifest_list, snapshot.delta_manifest_list, snapshot.changelog_manifest_list)
        return [name for name in names if name is not None]
