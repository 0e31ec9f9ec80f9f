"""Files on a local disk. A file is created atomically: write a temporary file, sync it, then link(2) it.

Names of temporary files begin with a dot and end in ``.tmp``; no table refers to those that a crash leaves.
"""

# ruff: noqa: PTH102, PTH105, PTH112, PTH116, PTH120  paths are strings here, and one lookup of many thousands should not cost a Path

from __future__ import annotations

import errno
import os
import stat
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from storage_lib.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from storage_lib.io.file_io import FileStatus
from storage_lib.io.local.local_deletion import delete_directory, delete_file
from storage_lib.io.local.local_output import LocalOutput
from storage_lib.io.local.sync_threads import SYNC_THREADS

_Written = TypeVar("_Written")
_NO_LINKS = frozenset(
    {
        errno.EPERM,
        errno.ENOTSUP,
        errno.EOPNOTSUPP,
        errno.ENOSYS,
        errno.EMLINK,
        errno.EXDEV,
    }
)
_PERMANENT = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENAMETOOLONG,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EINVAL,
        errno.ELOOP,
    }
)


class LocalFileIO:
    """``FileIO`` on this machine's disk. Thread-safe; a pickled copy is equivalent to the original.

    ``durable=False`` leaves out every fsync: for tables that may be lost with the machine, and for most tests.
    """

    has_create_if_absent = True

    def __init__(self, *, durable: bool = True) -> None:
        self._durable = durable
        # Directories that hold a new directory and are not synced yet; ``sync`` does that for all of them.
        self._unsynced: set[str] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[], LocalFileIO], tuple[()]]:
        """Pickle the setting only."""
        return partial(LocalFileIO, durable=self._durable), ()

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file. Raises ``NotFoundError`` if it does not exist."""
        # Tables have many small files, and creating a Path takes longer than opening one of them.
        with _errors_of("read", path), open(path, "rb", buffering=0) as file:  # noqa: PTH123  see above
            return file.readall()

    def exists(self, path: str) -> bool:
        """Whether a file, directory or link exists."""
        try:
            # Not os.path.exists, which returns False for any error. A link exists even if its target does not.
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _translated("look for", path, error) from error
        return True

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a durable file atomically, or return False if the name is taken."""
        if self.exists(path):
            return False
        aside = _aside(path)
        with _errors_of("create", path):
            self._with_parents(
                path,
                lambda: _write_new(aside, data, durable=self._durable),
                durable=self._durable,
            )
            try:
                linked = _link(aside, path)
            finally:
                with suppress(OSError):
                    Path(aside).unlink()
        if not linked:
            return False
        try:
            self._sync([_parent(path)])
        except OSError as error:
            message = f"created {path}, but can't tell whether it would survive a power failure: {error}"
            raise CommitOutcomeUnknownError(message) from error
        return True

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file. Raises ``AlreadyExistsError`` if it exists."""
        with _errors_of("write", path):
            self._with_parents(
                path,
                lambda: _write_new(path, data, durable=self._durable),
                durable=self._durable,
            )
            self._sync([_parent(path)])

    def replace(self, path: str, data: bytes) -> None:
        """Atomically write or overwrite a file; not durable."""
        aside = _aside(path)
        with _errors_of("replace", path):
            self._with_parents(path, lambda: _write_new(aside, data, durable=False), durable=False)
            try:
                os.replace(aside, path)
            except OSError:
                with suppress(OSError):
                    Path(aside).unlink()
                raise

    def list_directory(self, path: str) -> list[FileStatus]:
        """Return the entries of one directory, including temporary files; empty if it does not exist."""
        try:
            with os.scandir(path) as entries:
                return [status for entry in entries if (status := _status(entry)) is not None]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _translated("list", path, error) from error

    def delete(self, path: str, *, below: str | None = None) -> None:
        """Delete a file or a link if it exists and is not behind a link below ``below``."""
        with _errors_of("delete", path):
            delete_file(path, below)

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        """Delete a directory recursively if it exists and is not behind a link; links in it are not followed."""
        with _errors_of("delete", path):
            delete_directory(path, below)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Move a directory atomically; False if the new name is taken."""
        with _errors_of("rename", path):
            if os.path.lexists(new_path):
                return False
            self._sync(_make_directories(_parent(new_path)))
            try:
                Path(path).rename(new_path)
            except OSError as error:
                # rename(2) replaces an empty directory that was created meanwhile, but not one with files.
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    return False
                raise
            try:
                self._sync([_parent(path), _parent(new_path)])
            except OSError as error:
                message = f"renamed {path} to {new_path}, but can't tell if it would survive a power failure: {error}"
                raise CommitOutcomeUnknownError(message) from error
            return True

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they are missing."""
        with _errors_of("make directory", path):
            self._sync(_make_directories(path))

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file, mapped into memory."""
        with _errors_of("open", path):
            if os.stat(path).st_size == 0:
                return pa.BufferReader(b"")  # an empty file can't be mapped
            return pa.memory_map(path)

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for one sequential write. Raises ``AlreadyExistsError`` if the name is taken."""
        with _errors_of("create", path):
            descriptor = self._with_parents(path, lambda: _new_file(path), durable=False)
            return pa.PythonFile(LocalOutput(path, descriptor, _translated), mode="w")

    def sync(self, paths: list[str]) -> None:
        """Make files written through ``open_output``, and their directories, durable in parallel."""
        directories = {_parent(path) for path in paths}
        with self._lock:
            made = {parent for parent in self._unsynced if any(_is_inside(path, parent) for path in directories)}
        with _errors_of("sync", ", ".join(paths[:3])):
            self._sync([*paths, *(directories | made)])
        with self._lock:
            self._unsynced -= made

    def _with_parents(self, path: str, write: Callable[[], _Written], *, durable: bool) -> _Written:
        """Write; if a directory is missing, create it and write again."""
        try:
            return write()
        except FileNotFoundError:
            parents = _make_directories(_parent(path))
            if durable:
                self._sync(parents)
            else:
                with self._lock:
                    self._unsynced.update(parents)
            return write()

    def _sync(self, paths: Iterable[str]) -> None:
        distinct = list(dict.fromkeys(paths)) if self._durable else []
        if distinct:
            SYNC_THREADS.sync(distinct)


def _new_file(path: str) -> int:
    """Create a file and return its descriptor."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _write_new(path: str, data: bytes, *, durable: bool) -> None:
    descriptor = _new_file(path)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if durable:
            os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            Path(path).unlink()
        raise
    finally:
        os.close(descriptor)


def _link(aside: str, path: str) -> bool:
    """Link ``path`` to the file ``aside``; False if the name was taken."""
    try:
        os.link(aside, path)
    except FileExistsError:
        # A network file system may retry a request whose answer was lost, and fail against its own first attempt.
        return os.stat(aside).st_nlink > 1
    except OSError as error:
        if error.errno in _NO_LINKS:
            message = (
                f"can't create {path}: its file system has no hard links ({error}). Keep tables on one that has them"
            )
            raise InvalidInputError(message) from error
        raise
    return True


def _make_directories(path: str) -> list[str]:
    """Create missing directories; return the directories that got a new entry, outermost first."""
    missing = []
    while path and not os.path.isdir(path):
        missing.append(path)
        path = _parent(path)
    changed = []
    for directory in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(directory)
        changed.append(_parent(directory))
    return changed


def _aside(path: str) -> str:
    directory, _, name = path.rpartition("/")
    aside = f".{name[:100]}.{uuid.uuid4().hex}.tmp"
    return f"{directory}/{aside}" if directory else aside


def _parent(path: str) -> str:
    return os.path.dirname(path.rstrip("/")) or "."


def _is_inside(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _status(entry: os.DirEntry[str]) -> FileStatus | None:
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted while we were listing
    is_link = stat.S_ISLNK(found.st_mode)
    return FileStatus(
        name=entry.name,
        is_directory=_leads_to_directory(entry) if is_link else stat.S_ISDIR(found.st_mode),
        size_bytes=found.st_size,
        modified_ms=found.st_mtime_ns // 1_000_000,
        is_link=is_link,
    )


def _leads_to_directory(link: os.DirEntry[str]) -> bool:
    try:
        return link.is_dir()
    except OSError:
        return False  # a cycle of links, or a target that we may not read


@contextmanager
def _errors_of(act: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _translated(act, path, error) from error


def _link_target(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except OSError:
        return None


def _translated(act: str, path: str, error: OSError) -> Exception:
    if isinstance(error, FileNotFoundError) and (target := _link_target(path)) is not None:
        return CorruptFileError(
            f"can't {act} {path}: it is a symbolic link to {target}, which is not there. Restore that"
        )
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"can't {act} {path}: there is no such file")
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(
            f"can't {act} {path}: the name is taken; files are never changed in place, use a new name"
        )
    reason = error.strerror or str(error)
    if error.errno in _PERMANENT:
        return InvalidInputError(f"can't {act} {path}: {reason}. Check the path and who may write there")
    return UnavailableError(f"can't {act} {path}: {reason}. Try again when the disk is well")
