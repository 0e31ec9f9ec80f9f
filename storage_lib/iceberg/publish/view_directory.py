"""The view's ``metadata`` directory: ``v<n>.metadata.json`` shows snapshot n, ``version-hint.text`` names the newest.

A metadata file is created only if no other process has created it, after the manifests that it names. The hint is
written afterwards, so it may be too low; readers of Iceberg's Hadoop tables look for later files by themselves.

Other programs may write into the directory, although nothing asks them to: an engine of Iceberg that commits to the
view, or one of Paimon that has the same option. Their metadata is never built upon, and replaced by the next commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.iceberg.encode.table_metadata import ViewMetadata, decode_metadata, encode_metadata
from storage_lib.io.after_commit import after_commit
from storage_lib.io.file_io import FileIO, FileStatus
from storage_lib.io.file_io_factory import is_local
from storage_lib.schema.table_schema import TableSchema

_LOGGER = logging.getLogger(__name__)
_HINT = "version-hint.text"
_REGISTERED = "registered-hint.text"
_WAITING = "waiting-hint.text"
_PREFIX, _SUFFIX = "v", ".metadata.json"
_WRITES_AT_ONCE = 8
_DIGITS_MAX = 19
"""Of the highest id of a snapshot."""
KEPT_MILLIS = 600_000
"""Older metadata files stay for readers that have read the hint and not yet the file that it names."""


class ViewDirectory:
    """Reads and writes the files of one view. Thread-safe; remembers the metadata that it read or wrote last."""

    def __init__(self, file_io: FileIO, root: str, *, keeps_registered: bool = False) -> None:
        """``root`` is the directory of the view; see ``view_placement``.

        ``keeps_registered``: metadata that a catalog of others names is kept for its readers, whatever its age.
        """
        self._file_io = file_io
        self._keeps_registered = keeps_registered
        self.root = root
        self.directory = f"{root}/metadata"
        self._is_local = is_local(root)
        self._last: tuple[bytes, ViewMetadata | None] | None = None

    def path(self, name: str) -> str:
        """Return the path of a file of the view."""
        return f"{self.directory}/{name}"

    @property
    def hint_path(self) -> str:
        """Path of the version hint."""
        return self.path(_HINT)

    def metadata_path(self, number: int) -> str:
        """Return the path of the metadata that shows snapshot ``number``."""
        return self.path(f"{_PREFIX}{number}{_SUFFIX}")

    def newest(self) -> ViewMetadata | None:
        """Return the newest metadata that this library wrote; None if there is none."""
        found = self.newest_document()
        return None if found is None else found[0]

    def newest_document(self) -> tuple[ViewMetadata, str, bytes] | None:
        """Return the newest metadata that this library wrote with its path and its bytes; None if there is none."""
        for number in self._from_newest():
            found = self._read(number)
            if found is not None:
                return found
        return None

    def read(self, path: str) -> bytes:
        """Return a file of the view; ``NotFoundError`` if it is missing."""
        return self._file_io.read_bytes(path)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Create files with unique paths, in parallel in a remote store. They are durable after ``sync``."""
        if self._is_local:
            # Threads would cost more than they save.
            for path, data in files.items():
                self._write(path, data)
            return
        with ThreadPoolExecutor(_WRITES_AT_ONCE) as threads:
            list(threads.map(self._write, files.keys(), files.values()))

    def _write(self, path: str, data: bytes) -> None:
        with self._file_io.open_output(path) as out:
            out.write(data)

    def sync(self, paths: list[str]) -> None:
        """Make files durable."""
        self._file_io.sync(paths)

    def create(self, metadata: ViewMetadata, schema: TableSchema) -> bool:
        """Publish the metadata of a snapshot; False if another process has published that snapshot.

        Metadata of other programs with this number is replaced, and such with a higher number deleted.
        If it raises, the metadata may have been created nevertheless.
        """
        number, path = metadata.snapshot_id, self.metadata_path(metadata.snapshot_id)
        data = encode_metadata(metadata, schema)
        if not self._file_io.create_if_absent(path, data):
            existing = self._load(number)
            if existing is not None and _is_same(existing, metadata):
                # Its process may have crashed before it wrote the hint.
                self._hint(number, is_next=metadata.follows_each)
                return False
            if existing is None:
                _LOGGER.warning("%s was not written by this library, and is replaced: the view is only read", path)
            self._file_io.replace(path, data)
        self._last = data, metadata
        with after_commit(f"writing the version hint of {self.directory}"):
            self._hint(number, is_next=metadata.follows_each)
            due = list(_due(metadata))
            # The entry is changed before this is noted, so it may name newer metadata, but no older one.
            noted = self.registered() if due and self._keeps_registered else None
            for each in due:
                if noted is None or each < noted[0]:
                    self.delete(self.metadata_path(each))
        return True

    def replace(self, metadata: ViewMetadata, schema: TableSchema) -> None:
        """Write other metadata of the same snapshot, without expired ones or with other tags."""
        self._file_io.replace(self.metadata_path(metadata.snapshot_id), encode_metadata(metadata, schema))

    def delete(self, path: str) -> None:
        """Delete a file of the view, if it exists."""
        self._file_io.delete(path, below=self.root)

    def delete_all(self) -> None:
        """Delete the whole directory."""
        self._file_io.delete_tree(self.directory, below=self.root)

    def files(self) -> Iterator[tuple[str, FileStatus]]:
        """Yield path and status of each file."""
        for entry in self._file_io.list_directory(self.directory):
            if entry.is_link or not entry.is_directory:
                yield self.path(entry.name), entry

    def is_metadata(self, path: str) -> bool:
        """Return whether a path is one of metadata, rather than of a manifest or a vector."""
        return _number(path.rpartition("/")[2]) is not None

    def is_hint(self, path: str) -> bool:
        """Return whether a path is that of a hint: a file with the number of a snapshot."""
        return path in (self.path(_HINT), self.path(_REGISTERED), self.path(_WAITING))

    def has_hint(self) -> bool:
        """Return whether the version hint names metadata, so that readers find the newest one.

        It is missing if a process crashed when it had created the view's first metadata.
        """
        number = self._hinted()
        return number is not None and self._file_io.exists(self.metadata_path(number))

    def repair_hint(self, number: int) -> None:
        """Write the version hint again if it names no metadata; ``number`` is of the newest one."""
        if not self.has_hint():
            self._hint(number, is_next=False)

    def registered(self) -> tuple[int, str] | None:
        """Return the newest snapshot that a catalog of others is known to show, and its entry; None if there is none.

        The entry is the text of ``note_registered``; empty in a note of an earlier version.
        """
        return self._noted_in(_REGISTERED)

    def note_registered(self, number: int, entry: str) -> None:
        """Note that ``entry`` in a catalog of others shows snapshot ``number``."""
        self._file_io.replace(self.path(_REGISTERED), f"{number} {entry}".encode())

    def forget_registered(self) -> None:
        """Delete the note of ``note_registered``: the entry ends."""
        self.delete(self.path(_REGISTERED))

    def waiting(self) -> tuple[int, str] | None:
        """Return id and identity of the newest snapshot that was found to wait for a compaction; None if there is none.

        Those after the one that the view shows, up to this one, wait as well.
        """
        return self._noted_in(_WAITING)

    def note_waiting(self, number: int, identity: str) -> None:
        """Note that the view can't show snapshot ``number``, so that nobody looks again."""
        self._file_io.replace(self.path(_WAITING), f"{number} {identity}".encode())

    def withdraw(self, number: int, former: int) -> None:
        """Delete the metadata of a snapshot again, so that the view shows the former one."""
        self.delete(self.metadata_path(number))
        self._hint(former, is_next=False)

    def write_for_catalog(self, location: str, name: str, data: bytes) -> str:
        """Write a metadata file that belongs to a REST catalog, where that writes its own; return its path."""
        path = f"{location}/metadata/{name}{_SUFFIX}"
        self._file_io.create_if_absent(path, data)
        return path

    def numbers(self) -> list[int]:
        """Return the numbers of all metadata files, ascending."""
        found = (_number(entry.name) for entry in self._file_io.list_directory(self.directory))
        return sorted(number for number in found if number is not None)

    def delete_above(self, number: int) -> None:
        """Delete the metadata of snapshots after ``number``, which others have rolled back."""
        for each in self.numbers():
            if each > number:
                self.delete(self.metadata_path(each))

    def _hint(self, number: int, *, is_next: bool) -> None:
        """Write the number of the newest metadata, which another process may have published meanwhile.

        ``is_next``: numbers follow each other. Otherwise the directory is listed, and again afterwards: a slower
        process must not leave a lower number.
        """
        newest = self._newest_from(number, self._numbers_after(number, is_next=is_next))
        self._file_io.replace(self.path(_HINT), str(newest).encode())
        while not is_next and (newer := self._newest_from(newest, self._numbers_after(newest, is_next=False))) > newest:
            newest = newer
            self._file_io.replace(self.path(_HINT), str(newest).encode())

    def _newest_from(self, number: int, later: Iterator[int]) -> int:
        """Return the highest number of our metadata from ``number`` on; delete that of others."""
        newest = number
        for each in later:
            if self._load(each) is None:
                self.delete(self.metadata_path(each))
            else:
                newest = each
        return newest

    def _numbers_after(self, number: int, *, is_next: bool) -> Iterator[int]:
        if not is_next:
            yield from (each for each in self.numbers() if each > number)
            return
        while self._file_io.exists(self.metadata_path(number + 1)):
            number += 1
            yield number

    def _from_newest(self) -> Iterator[int]:
        """Yield the numbers of metadata files, the newest first."""
        number = self._hinted()
        if number is None or not self._file_io.exists(self.metadata_path(number)):
            yield from reversed(self.numbers())
            return
        while self._file_io.exists(self.metadata_path(number + 1)):
            number += 1
        yield number
        yield from reversed([each for each in self.numbers() if each != number])

    def _hinted(self) -> int | None:
        noted = self._noted_in(_HINT)
        return None if noted is None else noted[0]

    def _noted_in(self, name: str) -> tuple[int, str] | None:
        """Return the number and the text after it in a hint; None if there is none, or a damaged one."""
        try:
            content = self._file_io.read_bytes(self.path(name)).decode("utf-8", "replace")
        except NotFoundError:
            return None
        number, _, text = content.strip().partition(" ")
        is_number = number.isascii() and number.isdigit() and len(number) <= _DIGITS_MAX
        return (int(number), text) if is_number else None

    def _load(self, number: int) -> ViewMetadata | None:
        found = self._read(number)
        return None if found is None else found[0]

    def _read(self, number: int) -> tuple[ViewMetadata, str, bytes] | None:
        path = self.metadata_path(number)
        try:
            data = self._file_io.read_bytes(path)
            found = self._decoded(data, path)
        except (NotFoundError, CorruptFileError):
            return None
        return (found, path, data) if found is not None and found.snapshot_id == number else None

    def _decoded(self, data: bytes, path: str) -> ViewMetadata | None:
        """Decode metadata unless it is the same as last: it lists all snapshots, so its size has no bound."""
        last = self._last
        if last is not None and last[0] == data:
            return last[1]
        found = decode_metadata(data, path)
        self._last = data, found
        return found


def _is_same(one: ViewMetadata, other: ViewMetadata) -> bool:
    """Return whether both show a snapshot to the same readers."""
    return (one.identity, one.location, one.version) == (other.identity, other.location, other.version)


def _due(metadata: ViewMetadata) -> Iterator[int]:
    """Yield the numbers of older metadata files whose time has passed since the snapshot before was published."""
    newest = metadata.updated_millis - KEPT_MILLIS
    before = metadata.snapshots[-2].time_millis - KEPT_MILLIS if len(metadata.snapshots) > 1 else newest
    for each in reversed(metadata.snapshots):
        if each.time_millis <= before:
            break
        if each.time_millis <= newest and each.parent is not None:
            yield each.parent


def _number(name: str) -> int | None:
    digits = name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
    is_metadata = name == f"{_PREFIX}{digits}{_SUFFIX}" and digits.isascii() and digits.isdigit()
    return int(digits) if is_metadata else None
