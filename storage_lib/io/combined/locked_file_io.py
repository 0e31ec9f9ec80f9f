"""Create-if-absent implemented with a lock, for stores without an atomic one.

    hold the lock ─▶ exists already? lost ─▶ still held? ─▶ put ─▶ still held? created, else unknown

A slow holder whose lock was taken over notices before the put. Only the put itself is not covered, so the lock's
timeout has to be longer than the longest request.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import pyarrow as pa

from storage_lib.errors import CommitOutcomeUnknownError, LeaseLostError
from storage_lib.io.file_io import FileIO, FileStatus


class Held(Protocol):
    """A lock that is held."""

    def check(self) -> None:
        """Raise ``LeaseLostError`` if the lock is no longer held."""


class LockedFileIO:
    """``FileIO`` over ``inner``. ``hold`` acquires the lock of a path. Picklable if both are."""

    has_create_if_absent = True

    def __init__(self, inner: FileIO, hold: Callable[[str], AbstractContextManager[Held]]) -> None:
        self._inner = inner
        self._hold = hold

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file, or return False if the name is taken. Atomic among users of the lock."""
        if self._inner.exists(path):
            return False
        with self._hold(path) as held:
            if self._inner.exists(path):
                return False
            held.check()
            if self._inner.has_create_if_absent:
                return self._inner.create_if_absent(path, data)
            self._inner.replace(path, data)
            try:
                held.check()
            except LeaseLostError as error:
                message = f"can't tell whether {path} was created: {error}"
                raise CommitOutcomeUnknownError(message) from error
            return True

    def read_bytes(self, path: str) -> bytes:
        """See ``FileIO``."""
        return self._inner.read_bytes(path)

    def exists(self, path: str) -> bool:
        """See ``FileIO``."""
        return self._inner.exists(path)

    def write_bytes(self, path: str, data: bytes) -> None:
        """See ``FileIO``."""
        self._inner.write_bytes(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """See ``FileIO``."""
        self._inner.replace(path, data)

    def list_directory(self, path: str) -> list[FileStatus]:
        """See ``FileIO``."""
        return self._inner.list_directory(path)

    def delete(self, path: str, *, below: str | None = None) -> None:
        """See ``FileIO``."""
        self._inner.delete(path, below=below)

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        """See ``FileIO``."""
        self._inner.delete_tree(path, below=below)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """See ``FileIO``."""
        return self._inner.rename_directory(path, new_path)

    def make_directory(self, path: str) -> None:
        """See ``FileIO``."""
        self._inner.make_directory(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """See ``FileIO``."""
        return self._inner.open_input(path)

    def open_output(self, path: str) -> pa.NativeFile:
        """See ``FileIO``."""
        return self._inner.open_output(path)

    def sync(self, paths: list[str]) -> None:
        """See ``FileIO``."""
        self._inner.sync(paths)
