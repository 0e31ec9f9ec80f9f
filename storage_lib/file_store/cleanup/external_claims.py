"""Ownership of external data directories. Manifests name files by absolute paths, so two tables could share one.

A table that is created or altered here claims each of its directories by a file in it, which contains the table's own
directory. Files that the table's metadata does not name may only be deleted in a claimed directory: orphan
files, and the whole directory when the table is dropped. Tables of other engines have no claims.
"""

from __future__ import annotations

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileIO
from storage_lib.io.file_io_factory import absolute_place, is_same_place
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.external_paths import PATHS_OPTION, io_path

CLAIM_NAME = ".claimed-by-table"
_LENGTH_MAX = 4096


class ExternalClaims:
    """Claims of the table whose directory is ``location``. Directories are given as URLs or as paths."""

    def __init__(self, file_io: FileIO, location: str) -> None:
        self._file_io = file_io
        self.own_name = absolute_place(location)

    def holder(self, directory: str) -> str | None:
        """Return the directory of the table that has claimed it; None if none has."""
        try:
            data = self._file_io.read_bytes(f"{_path_of(directory)}/{CLAIM_NAME}")
        except NotFoundError:
            return None
        return data[:_LENGTH_MAX].decode(errors="replace").strip()

    def holder_around(self, directory: str) -> str | None:
        """Return the table that claims this directory or a parent, or has its own directory there, or None."""
        for each in _upwards(_path_of(directory)):
            holder = self.holder(each)
            if holder is not None:
                return holder
            if self._file_io.exists(TablePaths(each).schema_path(0)):
                return absolute_place(each)
        return None

    def is_ours(self, directory: str) -> bool:
        """Return whether this table has claimed it."""
        holder = self.holder(directory)
        return holder is not None and is_same_place(holder, self.own_name)

    def is_others(self, directory: str) -> bool:
        """Return whether another table has claimed it or a parent, or it is in another table's own directory."""
        return self._other_holder(directory) is not None

    def claim(self, directory: str, *, is_new: bool) -> None:
        """Claim a directory for this table; no-op if it has the claim. A new directory has to be empty.

        Raises ``InvalidInputError`` if it belongs to another table, or is not empty.
        """
        path = _path_of(directory)
        holder = self.holder_around(directory)
        if holder is not None and not is_same_place(holder, self.own_name):
            message = (
                f"data directory {directory} belongs to the table at {holder}; two tables can't share one, since "
                f"dropping either would delete the other's files. Choose another directory; if that table no longer "
                f"exists, delete {path}/{CLAIM_NAME} and the other files there"
            )
            raise InvalidInputError(message)
        if absolute_place(path) == self.own_name or absolute_place(path).startswith(f"{self.own_name}/"):
            message = f"data directory {directory} is in the table's own directory {self.own_name}; choose another one"
            raise InvalidInputError(message)
        entries = [entry.name for entry in self._file_io.list_directory(path) if entry.name != CLAIM_NAME]
        if is_new and entries:
            message = (
                f"data directory {directory} is not empty (it has {entries[0]!r}): files of another table may be "
                "there. Choose another directory, or delete what is left there"
            )
            raise InvalidInputError(message)
        if holder is None and not self._file_io.create_if_absent(f"{path}/{CLAIM_NAME}", self.own_name.encode()):
            self.claim(directory, is_new=is_new)

    def refuse_others(self, directory: str) -> None:
        """Raise ``InvalidInputError`` for another table's directory: it would delete new files of this table."""
        holder = self._other_holder(directory)
        if holder is not None:
            message = (
                f"no file of the table at {self.own_name} can be written to data directory {directory}: it belongs to "
                f"the table at {holder}, whose clean-up or drop would delete it. Give this table another directory "
                f"(ALTER TABLE ... SET ('{PATHS_OPTION}' = ...)); Flink's LIKE copies the original's. If "
                f"{holder} is this table's earlier place, and another engine renamed it, delete "
                f"{_path_of(directory)}/{CLAIM_NAME} and set the option to the same value again"
            )
            raise InvalidInputError(message)

    def _other_holder(self, directory: str) -> str | None:
        """Return the other table that holds the directory; None if there is none."""
        holder = self.holder_around(directory)
        return None if holder is None or is_same_place(holder, self.own_name) else holder

    def release(self, directory: str) -> None:
        """Release the claim on a directory that was never used."""
        if self.is_ours(directory):
            path = _path_of(directory)
            self._file_io.delete(f"{path}/{CLAIM_NAME}", below=path)

    def hand_over(self, directory: str, location: str) -> None:
        """Transfer the claim to the table's new directory, after a rename."""
        if self.is_ours(directory):
            self._file_io.replace(f"{_path_of(directory)}/{CLAIM_NAME}", absolute_place(location).encode())


def _path_of(directory: str) -> str:
    return io_path(directory) if directory.startswith("file:") else directory


def _upwards(path: str) -> list[str]:
    """Return a directory and its parents, without the root of a disk."""
    scheme, separator, rest = path.rpartition("://")
    parts = rest.split("/")
    return [f"{scheme}{separator}{'/'.join(parts[:end])}" for end in range(len(parts), 0 if separator else 1, -1)]
