"""The ``_delta_log`` directory of a table: it follows the Iceberg view, with the same data files.

    v<n>.metadata.json created ─▶ <version>.json created if absent ─▶ each tenth: a checkpoint ─▶ old versions deleted

The process that publishes a snapshot in the view then writes one version, with the difference to the newest one.
After a crash in between, the next commit does it. So readers of Delta see the rows of a snapshot of the table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote

from pyroaring import BitMap64

from storage_lib.errors import CorruptFileError, NotFoundError, UnavailableError
from storage_lib.iceberg.delta.delta_actions import NO_LOG, NOTE, Layout, LoggedFile, LogState, applied, encode_version
from storage_lib.iceberg.delta.delta_checkpoint import decode_checkpoint, encode_checkpoint, is_checkpoint_of
from storage_lib.iceberg.delta.inline_vector import inline_vector
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.io.after_commit import after_commit
from storage_lib.io.file_io import FileIO

_LOGGER = logging.getLogger(__name__)
DIRECTORY = "_delta_log"
CHECKPOINT_INTERVAL = 10
KEPT_MILLIS = 3_600_000
"""Versions stay at least so long after a checkpoint that replaces them, for readers that have listed them."""
_LAST_CHECKPOINT = "_last_checkpoint"
_VERSION, _CHECKPOINT = ".json", ".checkpoint.parquet"
_DIGITS = 20
_ATTEMPTS = 100
_UNESCAPED = "/!$&'()*+,;=:@~"
"""Characters that the path of a URI has as they are (RFC 3986, 3.3). Polars finds no vector of a path with escapes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the Iceberg view shows: a snapshot, and its files by path, delete files by that of their data file.

    ``layout`` returns the table's, with or without a mapping of names. ``same_rows_as``: a snapshot with the same rows.
    """

    snapshot_id: int
    identity: str
    time_millis: int
    layout: LayoutOf
    files: Mapping[str, ListedFile]
    delete_files: Mapping[str, ListedFile]
    same_rows_as: int | None


class LayoutOf(Protocol):
    """Returns a layout."""

    def __call__(self, *, maps_names: bool) -> Layout: ...


class DeltaLog:
    """The log of the table in the directory ``location``. Threads may share it."""

    def __init__(self, file_io: FileIO, location: str, table: str) -> None:
        self._file_io = file_io
        self._location = location
        self._table = table
        self._directory = f"{location}/{DIRECTORY}"
        self._known: LogState | None = None
        self._known_data = b""

    def follow(self, shown: Callable[[], Shown | None], read_mask: Callable[[ListedFile], BitMap64]) -> None:
        """Bring the log up to what the view shows, which ``shown`` finds.

        ``read_mask`` returns the positions that a delete file hides. Raises ``StorageError``; what was written before
        stays.
        """
        for _ in range(_ATTEMPTS):
            before = self._whole()
            wanted = shown()
            if wanted is None:
                return
            files = self._files(before, wanted)
            known = before.layout
            # Polars finds no vector of a path with escapes, and refuses a table whose readers have to map names.
            maps_names = any("%" in path for path in files) or (known is not None and known.maps_names)
            layout = wanted.layout(maps_names=maps_names)
            if known is not None:
                layout = replace(layout, created_millis=known.created_millis)
            if (before.snapshot_id, before.identity, known) == (wanted.snapshot_id, wanted.identity, layout):
                return
            after = LogState(
                version=before.version + 1,
                snapshot_id=wanted.snapshot_id,
                identity=wanted.identity,
                layout=layout,
                files=self._with_vectors(before, wanted, files, read_mask),
            )
            changes_rows = before.snapshot_id not in (wanted.same_rows_as, wanted.snapshot_id)
            data = encode_version(before, after, time_millis=wanted.time_millis, changes_rows=changes_rows)
            base = self._known_data
            if before.version < 0:
                # Remains of an earlier log, such as a checkpoint, would become part of this one.
                self._delete_all()
            if not self._file_io.create_if_absent(self._path(after.version, _VERSION), data):
                continue
            if not self._goes_on(before.version, base):
                # While this process was suspended, others have deleted this version, or the whole log.
                self._file_io.delete(self._path(after.version, _VERSION), below=self._location)
                self._known = None
                continue
            self._known, self._known_data = after, data
            if after.version % CHECKPOINT_INTERVAL == 0 and after.version:
                with after_commit(f"table {self._table}: writing a checkpoint of its Delta log"):
                    self._checkpoint(after, data)
                    self._delete_old(wanted.time_millis - KEPT_MILLIS)
            return
        message = (
            f"table {self._table}: other processes write its Delta log faster than this one; the next commit continues"
        )
        raise UnavailableError(message)

    def shown_snapshot(self) -> int | None:
        """Return the snapshot that the newest version shows; None without a log, -1 if another program wrote it."""
        state = self._newest()
        return None if state.version < 0 else state.snapshot_id

    def drop(self) -> None:
        """Delete the log, if this library wrote it: its readers get an error instead of rows that no longer change."""
        if any(NOTE.encode() in (self._read(self._path(each, _VERSION)) or b"") for each in self._numbers(_VERSION)):
            self._delete_all()

    def _delete_all(self) -> None:
        self._known = None
        self._file_io.delete_tree(self._directory, below=self._location)

    def _files(self, before: LogState, wanted: Shown) -> dict[str, LoggedFile]:
        """Return the files that the log is to show, without the texts of new vectors."""
        found: dict[str, LoggedFile] = {}
        for path, file in wanted.files.items():
            hiding = wanted.delete_files.get(path)
            logged = LoggedFile(
                path=self._logged_path(path),
                size_bytes=file.size_bytes,
                row_count=file.row_count,
                modified_millis=wanted.time_millis,
                source=None if hiding is None else hiding.path,
            )
            known = before.files.get(logged.path)
            found[logged.path] = known if known is not None and known.is_same(logged) else logged
        return found

    def _with_vectors(
        self,
        before: LogState,
        wanted: Shown,
        files: Mapping[str, LoggedFile],
        read_mask: Callable[[ListedFile], BitMap64],
    ) -> dict[str, LoggedFile]:
        complete = dict(files)
        for path, hiding in wanted.delete_files.items():
            logged = files.get(self._logged_path(path))
            if logged is not None and logged is not before.files.get(logged.path):
                text = inline_vector(read_mask(hiding))
                complete[logged.path] = replace(logged, vector=text)
        return complete

    def _goes_on(self, version: int, data: bytes) -> bool:
        """Return whether the version before the one just created is still the one that this is built upon."""
        if version < 0:
            names = {entry.name for entry in self._file_io.list_directory(self._directory)}
            return names == {f"{0:0{_DIGITS}}{_VERSION}"}
        return self._read(self._path(version, _VERSION)) == data

    def _logged_path(self, path: str) -> str:
        """Return a path relative to the table's directory if it is below that, as the log spells it: escaped."""
        below = f"{self._location}/"
        return quote(path.removeprefix(below), safe=_UNESCAPED)

    def _whole(self) -> LogState:
        """Return the state of the newest version; ``NO_LOG`` if there is none, or if the log is damaged."""
        try:
            return self._newest()
        except CorruptFileError as error:
            _LOGGER.warning("the Delta log of table %s is damaged, and begins again: %s", self._table, error)
            return NO_LOG

    def _newest(self) -> LogState:
        """Return the state of the newest version; ``NO_LOG`` if there is none."""
        state, data = self._known, self._known_data
        # The log may have been deleted, and begun again.
        if state is None or self._read(self._path(state.version, _VERSION)) != data:
            state, data = self._stored()
        while True:
            path = self._path(state.version + 1, _VERSION)
            found = self._read(path)
            if found is None:
                self._known, self._known_data = (None, b"") if state.version < 0 else (state, data)
                return state
            state, data = applied(state, state.version + 1, found, path), found

    def _stored(self) -> tuple[LogState, bytes]:
        """Return the state from which the log has to be read on, and its version: that of the newest checkpoint."""
        for number in reversed(self._numbers(_CHECKPOINT)):
            path, version = self._path(number, _CHECKPOINT), self._path(number, _VERSION)
            data, noted = self._read(path), self._read(version)
            if data is None or noted is None:
                continue
            note = applied(NO_LOG, number, noted, version)
            # Those of other programs, and of a log that was there before, are passed over.
            if is_checkpoint_of(data, note):
                state = decode_checkpoint(data, number, path)
                return replace(state, snapshot_id=note.snapshot_id, identity=note.identity), noted
        return NO_LOG, b""

    def _read(self, path: str) -> bytes | None:
        try:
            return self._file_io.read_bytes(path)
        except NotFoundError:
            return None

    def _checkpoint(self, state: LogState, version: bytes) -> None:
        data, count = encode_checkpoint(state)
        path, hint = self._path(state.version, _CHECKPOINT), f"{self._directory}/{_LAST_CHECKPOINT}"
        self._file_io.replace(path, data)
        self._file_io.replace(hint, json.dumps({"version": state.version, "size": count}).encode())
        if self._read(self._path(state.version, _VERSION)) != version:
            # Others have deleted the log meanwhile, and perhaps begun it again.
            self._file_io.delete(hint, below=self._location)
            self._file_io.delete(path, below=self._location)

    def _delete_old(self, millis: int) -> None:
        """Delete what lies before the newest checkpoint that was written before a time."""
        entries = self._file_io.list_directory(self._directory)
        old = [_number(each.name, _CHECKPOINT) for each in entries if each.modified_ms < millis]
        first = max((each for each in old if each is not None), default=0)
        # The oldest first: as long as a version is there, so are those after it.
        for entry in sorted(entries, key=lambda each: each.name):
            number = _number(entry.name, _VERSION)
            number = _number(entry.name, _CHECKPOINT) if number is None else number
            if number is not None and number < first:
                self._file_io.delete(f"{self._directory}/{entry.name}", below=self._location)

    def _numbers(self, suffix: str) -> list[int]:
        found = (_number(entry.name, suffix) for entry in self._file_io.list_directory(self._directory))
        return sorted(number for number in found if number is not None)

    def _path(self, version: int, suffix: str) -> str:
        return f"{self._directory}/{version:0{_DIGITS}}{suffix}"


def _number(name: str, suffix: str) -> int | None:
    digits = name.removesuffix(suffix)
    return int(digits) if name.endswith(suffix) and len(digits) == _DIGITS and digits.isdecimal() else None
