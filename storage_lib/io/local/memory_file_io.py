"""Files in a dictionary, with the semantics of a disk, for tests, examples and temporary tables."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from storage_lib.errors import AlreadyExistsError, NotFoundError
from storage_lib.io.file_io import FileStatus


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified_ms: int


class MemoryFileIO:
    """``FileIO`` in this process's memory. Thread-safe. ``now_millis`` gives files their times; tests pass a fake."""

    has_create_if_absent = True

    def __init__(self, now_millis: Callable[[], int] | None = None) -> None:
        self._now_millis = now_millis or (lambda: time.time_ns() // 1_000_000)
        # directory -> name -> file, or None for a directory inside.
        self._directories: dict[str, dict[str, _File | None]] = {}
        self._lock = threading.RLock()

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file. Raises ``NotFoundError`` if it does not exist."""
        with self._lock:
            found = self._find(path)
        if found is None:
            message = f"can't read {path}: there is no such file"
            raise NotFoundError(message)
        return found.data

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        directory, name = _split(path)
        with self._lock:
            return name in self._directories.get(directory, {}) or _clean(path) in self._directories

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file, or return False if the name is taken."""
        with self._lock:
            if self.exists(path):
                return False
            self._put(path, data)
            return True

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file. Raises ``AlreadyExistsError`` if it exists."""
        if not self.create_if_absent(path, data):
            message = f"can't write {path}: the name is taken; files are never changed in place, use a new name"
            raise AlreadyExistsError(message)

    def replace(self, path: str, data: bytes) -> None:
        """Write or overwrite a file."""
        with self._lock:
            self._put(path, data)

    def list_directory(self, path: str) -> list[FileStatus]:
        """Return the entries of one directory; empty if it does not exist."""
        with self._lock:
            entries = list(self._directories.get(_clean(path), {}).items())
        return [
            FileStatus(
                name=name,
                is_directory=file is None,
                size_bytes=0 if file is None else len(file.data),
                modified_ms=0 if file is None else file.modified_ms,
            )
            for name, file in entries
        ]

    def delete(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete a file if it exists."""
        directory, name = _split(path)
        with self._lock:
            if self._find(path) is not None:
                del self._directories[directory][name]

    def delete_tree(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete a directory recursively if it exists."""
        root = _clean(path)
        directory, name = _split(path)
        with self._lock:
            for inside in [each for each in self._directories if each == root or each.startswith(f"{root}/")]:
                del self._directories[inside]
            self._directories.get(directory, {}).pop(name, None)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Move a directory; False if the new name is taken."""
        old, new = _clean(path), _clean(new_path)
        with self._lock:
            if self.exists(new):
                return False
            if old not in self._directories:
                message = f"can't rename {path}: it is not there"
                raise NotFoundError(message)
            for inside in [each for each in self._directories if each == old or each.startswith(f"{old}/")]:
                self._make(new + inside.removeprefix(old))
                self._directories[new + inside.removeprefix(old)] = self._directories.pop(inside)
            directory, name = _split(old)
            self._directories.get(directory, {}).pop(name, None)
            return True

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they are missing."""
        with self._lock:
            self._make(_clean(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file without copying its bytes."""
        return pa.BufferReader(self.read_bytes(path))

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for one sequential write; its content is visible once it is closed."""
        self.write_bytes(path, b"")
        return pa.PythonFile(_Output(lambda data: self.replace(path, data)), mode="w")

    def sync(self, paths: list[str]) -> None:
        """Raise ``NotFoundError`` for a missing file; otherwise do nothing."""
        for path in paths:
            self.read_bytes(path)

    def _find(self, path: str) -> _File | None:
        directory, name = _split(path)
        return self._directories.get(directory, {}).get(name)

    def _put(self, path: str, data: bytes) -> None:
        directory, name = _split(path)
        self._make(directory)
        self._directories[directory][name] = _File(bytes(data), self._now_millis())

    def _make(self, directory: str) -> None:
        if directory in self._directories:
            return
        self._directories[directory] = {}
        parent, name = _split(directory)
        if name:
            self._make(parent)
            self._directories[parent][name] = None


class _Output(io.BytesIO):
    def __init__(self, store: Callable[[bytes], None]) -> None:
        super().__init__()
        self._store = store

    def close(self) -> None:
        if not self.closed:
            self._store(self.getvalue())
        super().close()


def _clean(path: str) -> str:
    return path.rstrip("/")


def _split(path: str) -> tuple[str, str]:
    directory, _, name = _clean(path).rpartition("/")
    return directory, name
