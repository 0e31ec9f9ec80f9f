"""Storage on a local disk. What is new is written aside, synced, and linked or renamed into place.

Names that begin with a dot are files in the making; ``list_directory`` never shows them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from storage_lib.errors import NotFoundError, StorageError, UnavailableError
from storage_lib.io.file_io import FileStatus

_SYNCS_AT_ONCE = 8


class LocalFileIO:
    """Thread-safe and process-safe; picklable.

    ``durable=False`` leaves out every fsync: for benchmarks, and for tables that may be lost with the machine.
    """

    def __init__(self, *, durable: bool = True) -> None:
        self._durable = durable

    def read_bytes(self, path: str) -> bytes:
        """The whole file."""
        with _errors(path):
            return Path(path).read_bytes()

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        with _errors(path):
            return os.path.lexists(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Write aside, sync, link(2): the link fails if the name is taken, whoever took it."""
        with _errors(path):
            aside = self._write_aside(path, data, sync=self._durable)
            try:
                os.link(aside, path)
            except FileExistsError:
                return False
            finally:
                with contextlib.suppress(FileNotFoundError):
                    aside.unlink()
            self._sync_directory(Path(path).parent)
        return True

    def write_bytes(self, path: str, data: bytes) -> None:
        """Write aside, sync, rename."""
        with _errors(path):
            self._write_aside(path, data, sync=self._durable).rename(path)
            self._sync_directory(Path(path).parent)

    def replace(self, path: str, data: bytes) -> None:
        """Write aside, rename; not synced."""
        with _errors(path):
            self._write_aside(path, data, sync=False).rename(path)

    def list_directory(self, path: str) -> list[FileStatus]:
        """Entries of one directory, without files in the making."""
        with _errors(path):
            try:
                entries = list(os.scandir(path))
            except (FileNotFoundError, NotADirectoryError):
                return []
            return [status for entry in entries if (status := _status(entry)) is not None]

    def delete(self, path: str) -> None:
        """Delete a file; fine if it is gone."""
        with _errors(path):
            Path(path).unlink(missing_ok=True)

    def delete_tree(self, path: str) -> None:
        """Delete a directory with everything in it."""
        with _errors(path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents, durably."""
        with _errors(path):
            self._make_directory(Path(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """A memory map; an empty file can't be mapped and is read instead."""
        with _errors(path):
            if Path(path).stat().st_size == 0:
                return pa.BufferReader(b"")
            return pa.memory_map(path, "r")

    def open_output(self, path: str) -> pa.NativeFile:
        """A new file under its own name: nothing refers to it before it is synced."""
        with _errors(path):
            self._make_directory(Path(path).parent)
            return pa.OSFile(path, "wb")

    def sync(self, paths: list[str]) -> None:
        """fsync files and their directories, several at once: an fsync mostly waits."""
        if not self._durable or not paths:
            return
        directories = sorted({str(Path(path).parent) for path in paths})
        with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, len(paths))) as threads:
            list(threads.map(_sync_path, paths))
            list(threads.map(_sync_path, directories))

    def _write_aside(self, path: str, data: bytes, *, sync: bool) -> Path:
        target = Path(path)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            descriptor = os.open(aside, flags, 0o666)
        except FileNotFoundError:
            self._make_directory(target.parent)
            descriptor = os.open(aside, flags, 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                if sync:
                    os.fsync(file.fileno())
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
        return aside

    def _make_directory(self, directory: Path) -> None:
        missing = []
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            self._sync_directory(each.parent)

    def _sync_directory(self, directory: Path) -> None:
        if self._durable:
            _sync_path(str(directory))


def _sync_path(path: str) -> None:
    with _errors(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _status(entry: os.DirEntry[str]) -> FileStatus | None:
    if entry.name.startswith("."):
        return None
    try:
        stat = entry.stat()
    except FileNotFoundError:  # deleted since it was listed
        return None
    return FileStatus(
        name=entry.name,
        is_directory=entry.is_dir(),
        size_bytes=stat.st_size,
        modified_ms=stat.st_mtime_ns // 1_000_000,
    )


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    """Errors of the system as the library's, with the path in them."""
    try:
        yield
    except StorageError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"there is no {path}"
        raise NotFoundError(message) from error
    except OSError as error:
        remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "check the disk and its permissions"
        message = f"{path}: {error.strerror or error}; {remedy}, then try again"
        raise UnavailableError(message) from error
