"""Files in HDFS, through a client without a JVM. A file is created atomically: write a temporary file, then rename it.

The NameNode renames a file only to a free name, and a file has only one name. So if the answer to a rename is lost,
the temporary file shows the outcome: if it is missing, it was renamed; if it exists, it was not, and deleting it
prevents a late rename. Names of temporary files begin with a dot and end in ``.tmp``, as on a local disk.

Servers, high availability and Kerberos are configured by Hadoop's own files (``HADOOP_CONF_DIR``) or by ``hdfs.<key>``.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from hdfs_native import Client, WriteOptions

from storage_lib.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    NotFoundError,
    UnavailableError,
)
from storage_lib.io.file_io import FileStatus
from storage_lib.io.remote.range_input import TAIL_BYTES, open_ranges

_OPTIONS = "hdfs."
_ATTEMPTS = 3
_BELOW_A_FILE = "is not a directory"


class _Place(NamedTuple):
    client: Client
    path: str


class HdfsFileIO:
    """``FileIO`` over URLs ``hdfs://namenode:port/path``, or ``hdfs:///path`` for Hadoop's default.

    Thread-safe. A pickled copy opens its own connections. Not usable in a process forked after its first use.
    """

    has_create_if_absent = True

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = dict(options or {})
        self._clients: dict[str, Client] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[], HdfsFileIO], tuple[()]]:
        """Pickle the options only."""
        return partial(HdfsFileIO, self._options), ()

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file. Raises ``NotFoundError`` if it does not exist."""
        client, name = self._place(path)
        with _errors_of("read", path):
            return client.read(name).read()

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        with _errors_of("look for", path):
            return _is_there(self._place(path))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create the file atomically, or return False if the name is taken."""
        place = self._place(path)
        aside = _Place(place.client, _aside(place.path))
        with _errors_of("create", path):
            if _is_there(place):
                return False
            _write_new(aside, data)
        lost_answer: Exception | None = None
        for _ in range(_ATTEMPTS):
            try:
                place.client.rename(aside.path, place.path, overwrite=False)
            except FileExistsError:
                pass
            except Exception as error:  # noqa: BLE001  the client raises many kinds; the temporary file shows the outcome
                lost_answer = error
            else:
                return True
            try:
                if not _is_there(aside):
                    return True
                if _is_there(place):
                    # Deleting the temporary file prevents a rename that is still in flight. If it is missing, such a
                    # rename has just succeeded, and the file is ours.
                    return not place.client.delete(aside.path)
            except Exception as error:  # noqa: BLE001  as above
                lost_answer = lost_answer or error
        message = f"can't tell whether {path} was created: {lost_answer}"
        raise CommitOutcomeUnknownError(message) from lost_answer

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file. Raises ``AlreadyExistsError`` if it exists."""
        with _errors_of("write", path):
            _write_new(self._place(path), data)

    def replace(self, path: str, data: bytes) -> None:
        """Atomically write or overwrite a file."""
        client, name = self._place(path)
        aside = _aside(name)
        with _errors_of("replace", path):
            _write_new(_Place(client, aside), data)
            try:
                client.rename(aside, name, overwrite=True)
            except BaseException:
                with suppress(Exception):
                    client.delete(aside)
                raise

    def list_directory(self, path: str) -> list[FileStatus]:
        """Return the entries of one directory, including temporary files; empty if it does not exist."""
        client, name = self._place(path)
        try:
            with _errors_of("list", path):
                entries = list(client.list_status(name))
        except NotFoundError:
            return []
        return [
            FileStatus(
                name=entry.path.rpartition("/")[2],
                is_directory=entry.isdir,
                size_bytes=entry.length,
                modified_ms=entry.modification_time,
            )
            for entry in entries
        ]

    def delete(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete a file if it exists."""
        client, name = self._place(path)
        with suppress(NotFoundError), _errors_of("delete", path):
            client.delete(name)

    def delete_tree(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete a directory recursively in one request if it exists."""
        client, name = self._place(path)
        with suppress(NotFoundError), _errors_of("delete", path):
            client.delete(name, recursive=True)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Move a directory atomically; False if the new name is taken."""
        place, new_place = self._place(path), self._place(new_path)
        if not self.exists(path):
            message = f"can't rename {path}: it is not there"
            raise NotFoundError(message)
        if self.exists(new_path):
            # HDFS would move it into an existing directory.
            return False
        parent = new_place.path.rpartition("/")[0]
        with _errors_of("rename", path):
            place.client.mkdirs(parent, create_parent=True)
            try:
                place.client.rename(place.path, new_place.path, overwrite=False)
            except FileExistsError:
                return False
            return True

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they are missing."""
        client, name = self._place(path)
        with _errors_of("make directory", path):
            client.mkdirs(name, create_parent=True)

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for reads by range. Its end, or a small file as a whole, is read at once."""
        client, name = self._place(path)
        with _errors_of("open", path):
            file = client.read(name)
            size = len(file)
            tail = file.read_range(max(0, size - TAIL_BYTES), min(size, TAIL_BYTES)) if size else b""

        def read_range(offset: int, length: int) -> bytes:
            with _errors_of("read", path):
                return file.read_range(offset, length)

        return open_ranges(read_range, size=size, tail=tail)

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for one sequential write. Raises ``AlreadyExistsError`` if the name is taken."""
        client, name = self._place(path)
        with _errors_of("create", path):
            return pa.PythonFile(client.create(name, WriteOptions(overwrite=False, create_parent=True)), mode="w")

    def sync(self, paths: list[str]) -> None:
        """Do nothing: a closed file is already replicated."""

    def _place(self, path: str) -> _Place:
        scheme, _, rest = path.partition("://")
        authority, _, name = rest.partition("/")
        root = f"{scheme}://{authority}"
        with self._lock:
            client = self._clients.get(root)
            if client is None:
                client = self._clients[root] = self._open_client(root)
        return _Place(client, "/" + name.strip("/"))

    def _open_client(self, root: str) -> Client:
        config = {key.removeprefix(_OPTIONS): value for key, value in self._options.items() if key.startswith(_OPTIONS)}
        try:
            return Client(root, config)
        except Exception as error:
            message = f"can't open {root}: {error}. Check the URL and HADOOP_CONF_DIR, or give {_OPTIONS}<key> options"
            raise InvalidInputError(message) from error


def _write_new(place: _Place, data: bytes) -> None:
    options = WriteOptions(overwrite=False, create_parent=True)
    with place.client.create(place.path, options) as writer:
        writer.write(data)


def _is_there(place: _Place) -> bool:
    try:
        place.client.get_file_info(place.path)
    except Exception as error:
        if _is_missing(error):
            return False
        raise
    return True


def _is_missing(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError) or _BELOW_A_FILE in str(error).partition("\n")[0]


def _aside(path: str) -> str:
    directory, _, name = path.rpartition("/")
    return f"{directory}/.{name[:100]}.{uuid.uuid4().hex}.tmp"


@contextmanager
def _errors_of(act: str, path: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _translated(act, path, error) from error


def _translated(act: str, path: str, error: Exception) -> Exception:
    if _is_missing(error):
        return NotFoundError(f"can't {act} {path}: there is no such file")
    reason = str(error).partition("\\n")[0].partition("\n")[0]  # without the server's stack
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(
            f"can't {act} {path}: the name is taken; files are never changed in place, use a new name"
        )
    if isinstance(error, (PermissionError, IsADirectoryError, ValueError)):
        return InvalidInputError(f"can't {act} {path}: {reason}. Check the path and who may write there")
    return UnavailableError(f"can't {act} {path}: {reason}. Try again when HDFS answers")
