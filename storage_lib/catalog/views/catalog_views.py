"""The views of one catalog: files ``.views/<view>/view-<n>`` in the directory of their database.

The file with the highest number is the view, or says that it was dropped. Each change creates the next number, which
is atomic on each store. The newest 100 files are kept, so that a process that was suspended can tell whether the number
that it takes is new. Other engines ignore the directory: they have no views in a catalog of files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from storage_lib.catalog.table_entries import TableEntries
from storage_lib.catalog.table_name import TableName
from storage_lib.catalog.views.view import DROPPED, View
from storage_lib.errors import AlreadyExistsError, CommitConflictError, CommitOutcomeUnknownError, NotFoundError
from storage_lib.io.after_commit import after_commit
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.numbered_files import NumberedFiles
from storage_lib.table.protocol.outcome import outcome, reports_outcome

_DIRECTORY = ".views"
_PREFIX = "view-"
_ATTEMPTS = 20
_KEPT = 100


class CatalogViews:
    """Views by name. A name is that of a table or of a view; ``has_table`` tells whether it is a table's."""

    def __init__(self, file_io: FileIO, entries: TableEntries, has_table: Callable[[str], bool]) -> None:
        self._file_io = file_io
        self._entries = entries
        self._has_table = has_table

    def find(self, name: str) -> View | None:
        """Return the view ``database.view``; None if it does not exist."""
        return self._newest(TableName.parse_plain(name))[1]

    def load(self, name: str) -> View:
        """Return the view ``database.view``. Raises ``NotFoundError`` if it does not exist."""
        found = self.find(name)
        if found is None:
            raise self._not_found(name)
        return found

    def exists(self, name: str) -> bool:
        """Return whether a view ``database.view`` exists."""
        return self.find(name) is not None

    def names(self, database: str | None = None) -> list[str]:
        """Return the names of all views, or of one database's, sorted."""
        databases = self._entries.databases() if database is None else [database]
        return sorted(
            name
            for each in databases
            for entry in self._file_io.list_directory(self._directory(each))
            if entry.is_directory and self.exists(name := f"{each}.{entry.name}")
        )

    @reports_outcome
    def create(self, view: View, *, or_replace: bool = False) -> None:
        """Store a view, and create its database if it is missing. The query is not checked; CREATE VIEW in SQL does.

        Raises ``AlreadyExistsError`` if a table has the name, or a view, unless ``or_replace``;
        ``CommitConflictError`` if others keep replacing it.
        """
        self._created(view, or_replace=or_replace)

    @reports_outcome
    def drop(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a view; ``NotFoundError`` if it does not exist, unless ``if_exists``."""
        view_name = TableName.parse_plain(name)
        with self._entries.lock(view_name) as hold:
            for _ in range(_ATTEMPTS):
                newest, view = self._newest(view_name)
                if view is None and if_exists:
                    return
                if view is None:
                    raise self._not_found(name)
                hold.check()
                if self._put(view_name, newest + 1, DROPPED):
                    return
        raise _conflict(name)

    @reports_outcome
    def rename(self, name: str, new_name: str) -> None:
        """Rename a view, also to another database. An interruption may leave both names; drop the one not wanted.

        Raises ``NotFoundError`` if it does not exist, ``AlreadyExistsError`` if the new name is in use, and
        ``CommitConflictError`` if others change the view meanwhile.
        """
        old, new = TableName.parse_plain(name), TableName.parse_plain(new_name)
        newest, view = self._newest(old)
        if view is None:
            raise self._not_found(name)
        number = self._created(replace(view, name=new_name), or_replace=False)
        with outcome(committed=None):
            is_moved = self._put(old, newest + 1, DROPPED)
            if not is_moved:
                self._put(new, number + 1, DROPPED)
        if not is_moved:
            raise _conflict(name)

    def forget(self, database: str) -> None:
        """Delete all that is stored about the views of a database that is dropped."""
        self._file_io.delete_tree(self._directory(database))

    def _created(self, view: View, *, or_replace: bool) -> int:
        """Create the next file of the view; return its number."""
        name = TableName.parse_plain(view.name)
        with self._entries.lock(name) as hold:
            if self._has_table(view.name):
                raise _is_table(view.name)
            self._entries.create_database(name.database, {})
            for _ in range(_ATTEMPTS):
                newest, found = self._newest(name)
                if found is not None and not or_replace:
                    message = f"view {view.name} already exists; drop it, or replace it"
                    raise AlreadyExistsError(message)
                hold.check()
                if self._put(name, newest + 1, view.to_json()):
                    self._undo_beside_table(name, newest + 1)
                    return newest + 1
        raise _conflict(view.name)

    def _undo_beside_table(self, name: TableName, number: int) -> None:
        """Drop the view again if another process has created a table of that name meanwhile."""
        with outcome(committed=None):
            has_table = self._has_table(str(name))
            if has_table:
                self._put(name, number + 1, DROPPED)
        if has_table:
            raise _is_table(str(name))

    def _newest(self, name: TableName) -> tuple[int, View | None]:
        """Return the number of the newest file, 0 without one, and the view; None if it does not exist."""
        files = self._files(name)
        while newest := max(files.ids(), default=0):
            # A file is deleted only after many newer ones were created, or with its database.
            with suppress(NotFoundError):
                return newest, View.from_json(files.load(newest), name=str(name), path=files.path(newest))
        return 0, None

    def _put(self, name: TableName, number: int, data: bytes) -> bool:
        """Create the file that follows the newest one; False if it does not follow that any more."""
        files = self._files(name)
        if not files.create(number, data):
            return False
        with outcome(committed=None):
            ids = files.ids()
        if ids[-1] - number >= _KEPT:
            message = (
                f"unknown outcome: {files.path(number)} was created, but so many newer ones are there that it may have "
                "existed before; look at the view, then try again"
            )
            raise CommitOutcomeUnknownError(message)
        with after_commit(f"deleting older files of view {name}"):
            for each in ids:
                if each <= ids[-1] - _KEPT:
                    self._file_io.delete(files.path(each))
        return True

    def _not_found(self, name: str) -> NotFoundError:
        known = ", ".join(self.names(TableName.parse_plain(name).database)) or "none"
        return NotFoundError(f"view {name} does not exist; existing views of its database: {known}")

    def _files(self, name: TableName) -> NumberedFiles:
        return NumberedFiles(self._file_io, self._home(name), _PREFIX, hints=False)

    def _home(self, name: TableName) -> str:
        return f"{self._directory(name.database)}/{name.table}"

    def _directory(self, database: str) -> str:
        """Return the directory of a database's views, in the one that holds those of its tables."""
        any_table = TableName(database, "table")
        return f"{posixpath.dirname(self._entries.home(any_table))}/{_DIRECTORY}"


def _is_table(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"view {name} can't be created: {name} is a table; drop it, or choose another name")


def _conflict(name: str) -> CommitConflictError:
    return CommitConflictError(f"view {name} was not changed: others changed it meanwhile; try again")
