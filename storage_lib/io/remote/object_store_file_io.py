"""Files in an object store: S3, Google Cloud Storage, Azure. Files are created atomically (``conditional_put.py``).

Directories are only prefixes of keys: they need not be created, and a directory without files does not exist.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

import obstore
import pyarrow as pa
from obstore.exceptions import GenericError, NotSupportedError

from storage_lib.errors import AlreadyExistsError, CommitOutcomeUnknownError, InvalidInputError, UnavailableError
from storage_lib.io.file_io import FileStatus
from storage_lib.io.remote.conditional_put import put_if_absent
from storage_lib.io.remote.object_output import PART_BYTES, ObjectOutput
from storage_lib.io.remote.object_store_errors import errors_of
from storage_lib.io.remote.object_store_settings import has_no_conditional_put, open_object_store
from storage_lib.io.remote.range_input import TAIL_BYTES, open_ranges

if TYPE_CHECKING:
    from obstore.store import ObjectStore


class OpenStore(Protocol):
    """Signature of ``open_object_store``."""

    def __call__(self, url: str, options: Mapping[str, str], *, repeats: bool = True) -> ObjectStore:
        """Open the store at ``url``."""


_PARTS_AT_ONCE = 4
_READ_BYTES = 8 * 1024 * 1024
_DELETED_AT_ONCE = 1000


class _Stores(NamedTuple):
    patient: ObjectStore
    """Retries requests that are safe to retry."""
    exact: ObjectStore
    """Sends each request once: a retried conditional put could fail against its own first attempt."""


class _Place(NamedTuple):
    stores: _Stores
    key: str

    @property
    def patient(self) -> tuple[ObjectStore, str]:
        return self.stores.patient, self.key

    @property
    def exact(self) -> tuple[ObjectStore, str]:
        return self.stores.exact, self.key


class ObjectStoreFileIO:
    """``FileIO`` over URLs (``s3://bucket/key``) of any bucket that ``options`` give access to.

    Thread-safe. A pickled copy opens its own connections; it contains ``options`` including their secrets. Not usable
    in a process forked after its first use. ``open_store`` is for tests.
    """

    def __init__(self, options: Mapping[str, str] | None = None, *, open_store: OpenStore = open_object_store) -> None:
        self._options = dict(options or {})
        self._open_store = open_store
        self._stores: dict[str, _Stores] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[[], ObjectStoreFileIO], tuple[()]]:
        """Pickle the arguments only."""
        return partial(ObjectStoreFileIO, self._options, open_store=self._open_store), ()

    @property
    def has_create_if_absent(self) -> bool:
        """False if ``s3.conditional-put=disabled`` says that the store ignores the condition of a put."""
        return not has_no_conditional_put(self._options)

    def read_bytes(self, path: str) -> bytes:
        """Return the whole object. Raises ``NotFoundError`` if it does not exist."""
        store, key = self._place(path).patient
        with errors_of("read", path):
            return bytes(obstore.get(store, key).bytes())

    def exists(self, path: str) -> bool:
        """Whether an object of that name, or below it, exists."""
        store, key = self._place(path).patient
        with errors_of("look for", path):
            with suppress(FileNotFoundError):
                obstore.head(store, key)
                return True
            return any(obstore.list(store, key, chunk_size=1))

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create the object atomically, or return False if the name is taken."""
        if not self.has_create_if_absent:
            message = f"can't create {path}: s3.conditional-put=disabled says that the store has no create-if-absent"
            raise InvalidInputError(message)
        store, key = self._place(path).exact
        return put_if_absent(store, key, data, path=path)

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create an object. Raises ``AlreadyExistsError`` if it exists."""
        if not self.has_create_if_absent:
            self.replace(path, data)
            return
        try:
            is_new = self.create_if_absent(path, data)
        except CommitOutcomeUnknownError as error:
            message = f"can't write {path}: {error}. Try again under a new name"
            raise UnavailableError(message) from error
        if not is_new:
            raise _name_taken(path)

    def replace(self, path: str, data: bytes) -> None:
        """Write or overwrite an object."""
        store, key = self._place(path).patient
        with errors_of("replace", path):
            obstore.put(store, key, data, use_multipart=False)

    def list_directory(self, path: str) -> list[FileStatus]:
        """Return the objects and common prefixes one level below ``path``."""
        store, key = self._place(path).patient
        with errors_of("list", path):
            found = obstore.list_with_delimiter(store, key or None)
        directories = [
            FileStatus(name=_last_part(prefix), is_directory=True, size_bytes=0, modified_ms=0)
            for prefix in found["common_prefixes"]
        ]
        files = [
            FileStatus(
                name=_last_part(each["path"]),
                is_directory=False,
                size_bytes=each["size"],
                modified_ms=int(each["last_modified"].timestamp() * 1000),
            )
            for each in found["objects"]
            if each["path"] != key  # the placeholder that some tools create for an empty directory
        ]
        return directories + files

    def delete(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete an object if it exists."""
        store, key = self._place(path).patient
        with errors_of("delete", path), suppress(FileNotFoundError):
            obstore.delete(store, key)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Raise ``InvalidInputError``: an object store can't move several objects atomically."""
        message = (
            f"{path} can't be renamed to {new_path}: an object store has no atomic rename. Create a new table there "
            "and copy the rows into it"
        )
        raise InvalidInputError(message)

    def delete_tree(self, path: str, *, below: str | None = None) -> None:  # noqa: ARG002  no links here
        """Delete all objects below ``path``, if any, many per request."""
        store, key = self._place(path).patient
        with errors_of("delete", path):
            for found in obstore.list(store, key, chunk_size=_DELETED_AT_ONCE):
                keys = [each["path"] for each in found]
                try:
                    obstore.delete(store, keys)
                except FileNotFoundError:
                    for each in keys:
                        with suppress(FileNotFoundError):
                            obstore.delete(store, each)

    def make_directory(self, path: str) -> None:
        """Do nothing: object stores have no directories."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Open an object for reads by range. Its size and end, or a small object as a whole, are read at once."""
        place = self._place(path)
        with errors_of("open", path):
            size, tail = _tail_of(place)

        def read_range(offset: int, length: int) -> memoryview:
            with errors_of("read", path):
                return _range_of(place, offset, length)

        return open_ranges(read_range, size=size, tail=tail)

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new object for one sequential write.

        If the name is taken, raises ``AlreadyExistsError`` on close, or as soon as the object is written in parts.
        """
        place = self._place(path)

        def open_parts() -> _Parts:
            if self.exists(path):
                raise _name_taken(path)
            return _Parts(place, path)

        return pa.PythonFile(ObjectOutput(put_whole=partial(self.write_bytes, path), open_parts=open_parts), mode="w")

    def sync(self, paths: list[str]) -> None:
        """Do nothing: an object is durable once its put was answered."""

    def _place(self, path: str) -> _Place:
        url = urlsplit(path, allow_fragments=False)
        # Not url.path: a name may hold a question mark.
        root = f"{url.scheme}://{url.netloc}"
        with self._lock:
            stores = self._stores.get(root)
            if stores is None:
                patient, exact = (self._open_store(root, self._options, repeats=repeats) for repeats in (True, False))
                stores = self._stores[root] = _Stores(patient, exact)
        return _Place(stores, path[len(root) :].strip("/"))


class _Parts:
    """Multipart upload of a large object, with this library's errors."""

    def __init__(self, place: _Place, path: str) -> None:
        self._path = path
        with errors_of("write", path):
            self._writer = obstore.open_writer(*place.patient, buffer_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def write(self, buffer: bytes | memoryview, /) -> int:
        with errors_of("write", self._path):
            return self._writer.write(buffer)

    def close(self) -> None:
        with errors_of("write", self._path):
            self._writer.close()


def _tail_of(place: _Place) -> tuple[int, memoryview]:
    """Return the object's size and its last bytes."""
    try:
        found = obstore.get(*place.patient, options={"range": {"suffix": TAIL_BYTES}})
    except (NotSupportedError, GenericError):
        # Azure does not support ranges from the end, and S3 rejects a range of an empty object.
        size = obstore.head(*place.patient)["size"]
        if not size:
            return 0, memoryview(b"")
        return size, memoryview(obstore.get_range(*place.patient, start=max(0, size - TAIL_BYTES), end=size))
    return found.meta["size"], memoryview(found.bytes())


def _range_of(place: _Place, offset: int, length: int) -> memoryview:
    """Read a range, a long one by several concurrent requests."""
    end = offset + length
    if length <= _READ_BYTES:
        return memoryview(obstore.get_range(*place.patient, start=offset, end=end))
    starts = range(offset, end, _READ_BYTES)
    pieces = obstore.get_ranges(
        *place.patient, starts=list(starts), ends=[min(start + _READ_BYTES, end) for start in starts], coalesce=0
    )
    return memoryview(b"".join(pieces))


def _last_part(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _name_taken(path: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"can't write {path}: the name is taken; files are never changed in place, use a new name"
    )
