"""Orphan file cleanup: unreferenced files in a table's directory, left by crashed writers and interrupted cleanups.

1. List files whose name and place may belong to a table; ignore all others, and do not follow symbolic links to
   directories. A link in the place of a file is itself the orphan, not its target.
2. Keep files younger than the age: a commit in progress has written its files, but not yet its snapshot.
3. Read the files that snapshots, tags and branches need, *after* listing, so that commits in between are seen.
4. Delete the rest, or only report it.

External data directories are included if the table has claimed them (``external_claims``): other tables may have files
in unclaimed ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.cleanup.file_deletion import FileDeletion, declared_by_any_schema
from storage_lib.file_store.cleanup.references import FileReferences
from storage_lib.file_store.committing.snapshot_view import SnapshotView
from storage_lib.file_store.snapshot.branch_directory import BranchDirectory
from storage_lib.io.file_io import FileIO, FileStatus
from storage_lib.io.table_directory.lease_paths import is_ticket
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.progress.operation import Operation, operation
from storage_lib.schema.options.external_paths import PATHS_OPTION, io_path

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 5
_LISTED_AT_ONCE = 1000
_ENTROPY = (4, 4, 4, 8)
"""Digits of the nested directories of data-file.external-paths.strategy=entropy-inject in a bucket's directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrphanResult:
    """Orphan files found, and removed unless it was a dry run; ``paths`` are sorted."""

    paths: tuple[str, ...] = ()
    size_bytes: int = 0


class OrphanFiles:
    """Finds orphan files in the directory of one table, including all of its branches."""

    def __init__(
        self,
        *,
        table: str,
        file_io: FileIO,
        paths: TablePaths,
        references: FileReferences,
        deletion: FileDeletion,
        branches: BranchDirectory,
        partition_depth: int,
        check_table: Callable[[], None],
        newest_view: Callable[[], SnapshotView | None],
    ) -> None:
        self._newest_view = newest_view
        self._table = table
        self._file_io = file_io
        self._paths = paths
        self._references = references
        self._deletion = deletion
        self._branches = branches
        self._partition_depth = partition_depth
        self._check_table = check_table
        self._links: dict[str, set[str]] = {}

    def remove(self, *, modified_until_ms: int, dry_run: bool) -> OrphanResult:
        """Delete orphan files last modified up to a time (epoch milliseconds of the storage's clock)."""
        self._check_table()
        self._links.clear()
        with operation("find orphans", self._table, total=None, unit="files") as files:
            candidates, outside = (
                {
                    path: status.size_bytes
                    for path, status in _counted(found, files)
                    if status.modified_ms <= modified_until_ms
                }
                for found in (self._candidates(), self._outside_candidates())
            )
        view = self._newest_view()
        of_view = {} if view is None else _of_view(view, modified_until_ms)
        if not candidates and not outside and not of_view:
            return OrphanResult()
        needed = self._needed()
        # Compare names, which are unique: the directory may have had another spelling when the file was written.
        names = {path.rpartition("/")[2] for path in needed}
        orphans = sorted(
            {*(candidates.keys() - needed), *(path for path in outside if path.rpartition("/")[2] not in names)}
        )
        candidates |= outside | of_view
        if (orphans or of_view) and not dry_run:
            with operation("delete orphans", self._table, total=len(orphans) + len(of_view), unit="files") as files:
                for path in orphans:
                    self._deletion.delete(path)
                    files.advance()
                for path in of_view:
                    assert view is not None  # noqa: S101  its files were listed
                    view.delete(path)
                    files.advance()
        paths = sorted((*orphans, *of_view))
        return OrphanResult(paths=tuple(paths), size_bytes=sum(candidates[path] for path in paths))

    def _needed(self) -> set[str]:
        for attempt in range(_ATTEMPTS):
            try:
                files = self._references.of_table()
            except (NotFoundError, SnapshotExpiredError):
                # A snapshot expired during the read. Never guess: start over.
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            return files.data | files.manifests | files.lists
        return set()

    def _candidates(self) -> Iterator[tuple[str, FileStatus]]:
        yield from self._in_main_directories()
        yield from self._in_buckets(self._paths.root, self._partition_depth)
        whole = self._branches.all_names()
        started = (
            self._paths.branch_of_directory(entry.name)
            for entry in self._file_io.list_directory(self._paths.branches_directory)
        )
        for branch in sorted({*whole, *(name for name in started if name is not None)}):
            yield from self._in_history(self._paths.of_branch(branch), is_whole=branch in whole)

    def _outside_candidates(self) -> Iterator[tuple[str, FileStatus]]:
        claims = ExternalClaims(self._file_io, self._paths.root)
        for url in declared_by_any_schema(self._file_io, self._paths):
            if claims.is_ours(url):
                yield from self._in_buckets(io_path(url), self._partition_depth, entropy=True)
            else:
                _LOGGER.warning(
                    "data directory %s of the table at %s is not searched for orphan files: the table has not claimed "
                    "it, and others may have files there. If it has it alone, set %s to the same value again",
                    url,
                    self._paths.root,
                    PATHS_OPTION,
                )

    def _in_main_directories(self) -> Iterator[tuple[str, FileStatus]]:
        for directory, prefixes in (
            (self._paths.manifest_directory, ("manifest-", "index-manifest-")),
            (self._paths.index_directory, ("index-",)),
            (self._paths.statistics_directory, ("stat-",)),
            (self._paths.rejected_directory, ("rejected-",)),
        ):
            if self._is_behind_link(directory):
                continue
            yield from self._files(directory, lambda name, prefixes=prefixes: name.startswith(prefixes))  # type: ignore[misc]

    def _in_buckets(self, directory: str, depth: int, *, entropy: bool = False) -> Iterator[tuple[str, FileStatus]]:
        """Yield every file of every bucket; partition directories are nested once per partition column.

        With ``entropy``, also files in a bucket's directories of binary digits, if it has any.
        """
        for entry in self._file_io.list_directory(directory):
            if not entry.is_directory or entry.is_link:
                continue
            path = f"{directory}/{entry.name}"
            if depth > 0 and "=" in entry.name:
                yield from self._in_buckets(path, depth - 1, entropy=entropy)
            elif depth == 0 and self._paths.bucket_of_directory(entry.name) is not None:
                yield from self._files(path, lambda _: True)
                if entropy:
                    yield from self._in_entropy(path, len(_ENTROPY))

    def _in_entropy(self, directory: str, depth: int) -> Iterator[tuple[str, FileStatus]]:
        if depth == 0:
            yield from self._files(directory, lambda _: True)
            return
        for entry in self._file_io.list_directory(directory):
            digits = _ENTROPY[-depth]
            if entry.is_directory and not entry.is_link and len(entry.name) == digits and set(entry.name) <= {"0", "1"}:
                yield from self._in_entropy(f"{directory}/{entry.name}", depth - 1)

    def _in_history(self, paths: TablePaths, *, is_whole: bool) -> Iterator[tuple[str, FileStatus]]:
        """Yield temporary files of crashed writers and entries of crashed lease waiters; all files if not a branch."""
        directories = (
            paths.schema_directory,
            paths.snapshot_directory,
            paths.tag_directory,
            paths.consumer_directory,
            paths.changelog_directory,
            paths.lease_directory,
            paths.commit_directory,
        )
        for directory in directories:
            if self._is_behind_link(directory):
                continue
            yield from self._files(directory, is_ticket if is_whole else lambda _: True)

    def _is_behind_link(self, directory: str) -> bool:
        """Return whether any directory from below the table's down to this one is a symbolic link."""
        place = self._paths.root
        for part in directory.removeprefix(f"{place}/").split("/"):
            if place not in self._links:
                self._links[place] = {entry.name for entry in self._file_io.list_directory(place) if entry.is_link}
            if part in self._links[place]:
                return True
            place = f"{place}/{part}"
        return False

    def _files(self, directory: str, fits: Callable[[str], bool]) -> Iterator[tuple[str, FileStatus]]:
        for entry in self._file_io.list_directory(directory):
            is_file = entry.is_link or not entry.is_directory
            if is_file and (fits(entry.name) or _is_written_aside(entry.name)):
                yield f"{directory}/{entry.name}", entry


def _counted(found: Iterator[tuple[str, FileStatus]], files: Operation) -> Iterator[tuple[str, FileStatus]]:
    """Yield the same files, reporting progress in steps of about one object store request."""
    count = 0
    for each in found:
        yield each
        count += 1
        if count == _LISTED_AT_ONCE:
            files.advance(count)
            count = 0
    files.advance(count)


def _is_written_aside(name: str) -> bool:
    """Return whether this is the name of a temporary file, to be renamed or linked once complete."""
    return name.startswith(".") and name.endswith(".tmp")


def _of_view(view: SnapshotView, modified_until_ms: int) -> dict[str, int]:
    """Return the sizes of a view's files that it does not need, by path."""
    return {path: status.size_bytes for path, status in view.orphans() if status.modified_ms <= modified_until_ms}
