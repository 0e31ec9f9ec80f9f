"""Storage in a dictionary, for tests and examples: the public twin of ``LocalFileIO``, same rules."""

from __future__ import annotations

import threading

import pyarrow as pa

from storage_lib.errors import NotFoundError
from storage_lib.io.file_io import FileStatus


class MemoryFileIO:
    """Thread-safe. Directories are there as soon as a file is in them, or when they were made."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._directories: set[str] = set()
        self._modified: dict[str, int] = {}
        self._writes = 0
        self._lock = threading.RLock()

    def read_bytes(self, path: str) -> bytes:
        """The whole file."""
        with self._lock:
            try:
                return self._files[path]
            except KeyError:
                message = f"there is no {path}"
                raise NotFoundError(message) from None

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        with self._lock:
            return path in self._files or path in self._directories

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Under one lock, so atomic."""
        with self._lock:
            if path in self._files:
                return False
            self._put(path, data)
            return True

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make a file."""
        with self._lock:
            self._put(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """Put ``data`` in place of whatever is there."""
        with self._lock:
            self._put(path, data)

    def list_directory(self, path: str) -> list[FileStatus]:
        """Entries of one directory; ``modified_ms`` counts writes, for there is no clock here."""
        prefix = path.rstrip("/") + "/"
        with self._lock:
            files = [
                FileStatus(
                    name=name, is_directory=False, size_bytes=len(data), modified_ms=self._modified[prefix + name]
                )
                for file, data in self._files.items()
                if file.startswith(prefix) and "/" not in (name := file[len(prefix) :])
            ]
            directories = [
                FileStatus(name=name, is_directory=True, size_bytes=0, modified_ms=0)
                for directory in self._directories
                if directory.startswith(prefix) and "/" not in (name := directory[len(prefix) :])
            ]
        return files + directories

    def delete(self, path: str) -> None:
        """Delete a file; fine if it is gone."""
        with self._lock:
            self._files.pop(path, None)

    def delete_tree(self, path: str) -> None:
        """Delete a directory with everything in it."""
        prefix = path.rstrip("/") + "/"
        with self._lock:
            self._files = {file: data for file, data in self._files.items() if not file.startswith(prefix)}
            self._directories = {each for each in self._directories if not f"{each}/".startswith(prefix)}

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents."""
        with self._lock:
            while path and path not in self._directories:
                self._directories.add(path)
                path = path.rpartition("/")[0]

    def open_input(self, path: str) -> pa.NativeFile:
        """Reads the bytes in place."""
        return pa.BufferReader(self.read_bytes(path))

    def open_output(self, path: str) -> pa.NativeFile:
        """The file appears when the stream is closed."""
        return pa.PythonFile(_Output(self, path), mode="w")

    def sync(self, paths: list[str]) -> None:
        """Nothing outlives the process anyway."""

    def _put(self, path: str, data: bytes) -> None:
        self.make_directory(path.rpartition("/")[0])
        self._files[path] = bytes(data)
        self._writes += 1
        self._modified[path] = self._writes


class _Output:
    """A writable file object that hands its bytes over when it is closed."""

    def __init__(self, files: MemoryFileIO, path: str) -> None:
        self._files = files
        self._path = path
        self._parts: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is shown before ``close``."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return sum(len(part) for part in self._parts)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._files.write_bytes(self._path, b"".join(self._parts))
