"""Branches of a table: independent histories that start at one of its snapshots.

    branch/branch-<name>/{schema, snapshot, tag, consumer, lease}  data files and manifests stay in the table

A branch exists as soon as its newest schema does: that file is written last, and deleted first. Without it, the
content of the branch's directory is left over from a crash and belongs to no branch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot
from storage_lib.file_store.snapshot.sure_deletion import delete_surely
from storage_lib.file_store.snapshot.tag import Tag, check_reference_name
from storage_lib.file_store.snapshot.tag_directory import TagDirectory
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.table_paths import MAIN_BRANCH, TablePaths
from storage_lib.schema.encoding.json_document import decode_json, int64
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.table_schema import TableSchema

_ONE_DIRECTORY = re.compile(r"[^/\\\x00-\x1f]+")
"""Of any engine: a name with a slash would lead out of the table."""
_RETAINED_UNTIL = "retainedUntil"
_KEPT_BY_TAG = "keptByTag"


class BranchDirectory:
    """Creates and deletes branches of one table; ``paths`` may be those of any of its branches."""

    def __init__(self, file_io: FileIO, paths: TablePaths, clock: Clock | None = None) -> None:
        """Without a ``clock``, tags and hints that another engine is overwriting are not read again."""
        self._file_io = file_io
        self._clock = clock
        self._paths = paths

    def names(self) -> list[str]:
        """Return every branch except the main one, sorted."""
        entries = self._file_io.list_directory(self._paths.branches_directory)
        names = (self._paths.branch_of_directory(entry.name) for entry in entries if entry.is_directory)
        return sorted(name for name in names if name is not None and self.exists(name))

    def exists(self, name: str) -> bool:
        """Return whether a complete branch of that name exists."""
        if not _ONE_DIRECTORY.fullmatch(name):
            return False
        schema_id = SchemaHistory(self._file_io, self._paths.of_branch(name)).latest_id()
        if schema_id is None:
            return False
        history = self.history(name)
        first = history.earliest_id()
        try:
            return first is None or history.load(first).schema_id <= schema_id
        except NotFoundError:
            return True

    def check_exists(self, name: str) -> None:
        """Raise ``NotFoundError`` listing the existing branches if this one does not exist."""
        if not self.exists(name):
            path = self._paths.of_branch(name).history_directory
            known = ", ".join(self.names()) or "none"
            message = f"there is no branch {name!r} ({path}); branches there: {known}"
            raise NotFoundError(message)

    def history(self, name: str) -> SnapshotHistory:
        """Return the snapshots of a branch."""
        return SnapshotHistory(self._file_io, self._paths.of_branch(name), self._clock)

    def tags(self, name: str) -> TagDirectory:
        """Return the tags of a branch."""
        return TagDirectory(self._file_io, self._paths.of_branch(name), self._clock)

    def changelogs(self, name: str) -> list[Snapshot]:
        """Return the expired snapshots whose changelogs are kept, in snapshot form."""
        directory = self._paths.of_branch(name).changelog_directory
        paths = [f"{directory}/{entry.name}" for entry in self._file_io.list_directory(directory)]
        return [
            decode_snapshot(self._file_io.read_bytes(path), path)
            for path in sorted(paths)
            if path.startswith(f"{directory}/changelog-")
        ]

    def all_names(self) -> list[str]:
        """Return the main branch and every other one."""
        return [MAIN_BRANCH, *self.names()]

    def create(
        self,
        name: str,
        *,
        schemas: Sequence[TableSchema],
        snapshot: Snapshot | None,
        tag: Tag | None = None,
        retained_until_ms: int | None = None,
        is_protected_by_tag: bool = False,
    ) -> None:
        """Create a branch that starts with ``snapshot`` (None: empty); ``schemas`` are all up to its newest, ascending.

        Raises ``AlreadyExistsError`` if the branch exists. Leftovers of an interrupted creation are replaced.
        """
        check_reference_name("branch", name)
        if name == MAIN_BRANCH:
            message = f"{MAIN_BRANCH!r} is the table itself; give the branch another name"
            raise InvalidInputError(message)
        if self.exists(name):
            message = f"there is a branch {name!r} already; delete it, or give the new one another name"
            raise AlreadyExistsError(message)
        paths = self._paths.of_branch(name)
        self._file_io.delete_tree(paths.history_directory, below=paths.root)
        if tag is not None:
            self.tags(name).create(tag)
        origin = {"snapshot": 0 if snapshot is None else snapshot.id}
        if retained_until_ms is not None:
            origin[_RETAINED_UNTIL] = retained_until_ms
        if is_protected_by_tag:
            origin[_KEPT_BY_TAG] = 1
        self._file_io.write_bytes(paths.branch_origin_path, json.dumps(origin).encode())
        if snapshot is not None:
            self.history(name).begin_with(snapshot)
        history = SchemaHistory(self._file_io, paths)
        for schema in schemas:
            history.append(schema)

    def origin(self, name: str) -> int | None:
        """Return the snapshot id that a branch started from, 0 if it was empty; None if another engine made it."""
        snapshot_id: int | None = self._origin(name).get("snapshot")
        return snapshot_id

    def is_protected_by_tag(self, name: str) -> bool:
        """Return whether a tag of the table was created with the branch, to protect its first snapshot."""
        return bool(self._origin(name).get(_KEPT_BY_TAG))

    def expired(self, now_ms: int) -> list[str]:
        """Return the branches whose retention has ended by ``now_ms``."""
        return [name for name in self.names() if self._origin(name).get(_RETAINED_UNTIL, now_ms + 1) <= now_ms]

    def _origin(self, name: str) -> dict[str, int]:
        path = self._paths.of_branch(name).branch_origin_path
        try:
            data = self._file_io.read_bytes(path)
        except NotFoundError:
            return {}
        return decode_json(
            data,
            lambda origin: {str(key): int64(value) for key, value in origin.items()},
            lambda defect: f"{path} does not say what the branch was made from: {defect}",
        )

    def delete(self, name: str) -> None:
        """Delete the branch's own files; the caller deletes its data files.

        Raises ``InvalidInputError`` if `branch` is a symbolic link.
        """
        paths = self._paths.of_branch(name)
        self._file_io.delete_tree(paths.schema_directory, below=paths.root)
        # If this is itself a link, only the link is deleted.
        delete_surely(self._file_io, paths.history_directory, what=f"branch {name!r}", below=paths.root, is_tree=True)
