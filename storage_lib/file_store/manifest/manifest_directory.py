"""The table's ``manifest/`` directory. Its files are immutable, so parsed ones are cached."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.manifest.index_manifest import IndexManifest, decode_index_manifest
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.manifest.manifest_file import ManifestFileMeta, decode_manifest
from storage_lib.file_store.manifest.manifest_list import decode_manifest_list
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.table_paths import TablePaths

_CACHED_ENTRIES_MAX = 100_000
_READS_AT_ONCE = 8


class ManifestDirectory:
    """Reads, writes and deletes manifests and manifest lists. Safe to use from several threads."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._paths = paths
        self._manifests: _Remembered[tuple[ManifestEntry, ...]] = _Remembered(_CACHED_ENTRIES_MAX)
        self._lists: _Remembered[tuple[ManifestFileMeta, ...]] = _Remembered(_CACHED_ENTRIES_MAX)
        self._indexes: _Remembered[IndexManifest] = _Remembered(_CACHED_ENTRIES_MAX)

    def read_list(self, name: str) -> tuple[ManifestFileMeta, ...]:
        """Return the manifests of one list, in commit order; raises ``NotFoundError`` if the list is missing."""
        known = self._lists.get(name)
        if known is None:
            path = self._paths.manifest_path(name)
            known = decode_manifest_list(self._file_io.read_bytes(path), path)
            self._lists.put(name, known, len(known))
        return known

    def read_manifest(self, manifest: ManifestFileMeta) -> tuple[ManifestEntry, ...]:
        """Return the entries of one manifest.

        Raises ``NotFoundError`` if it is missing, ``CorruptFileError`` if it is truncated.
        """
        known = self._manifests.get(manifest.file_name)
        if known is None:
            path = self._paths.manifest_path(manifest.file_name)
            known = decode_manifest(self._file_io.read_bytes(path), path)
            # A container truncated between two blocks looks complete: only the manifest list has the expected count.
            if len(known) < manifest.num_entries:
                message = (
                    f"{path} is truncated: {len(known)} entries, but the manifest list says {manifest.num_entries}"
                )
                raise CorruptFileError(message)
            self._manifests.put(manifest.file_name, known, len(known))
        return known

    def read_manifests(self, manifests: Sequence[ManifestFileMeta]) -> list[tuple[ManifestEntry, ...]]:
        """Return several manifests in the given order; unknown ones are read in parallel."""
        names = [each.file_name for each in manifests]
        known = {name: found for name in names if (found := self._manifests.get(name)) is not None}
        unknown = [each for each in manifests if each.file_name not in known]
        if len(unknown) <= _READS_AT_ONCE:
            known |= {each.file_name: self.read_manifest(each) for each in unknown}
        else:
            with ThreadPoolExecutor(_READS_AT_ONCE) as threads:
                read = threads.map(self.read_manifest, unknown)
                known |= {each.file_name: entries for each, entries in zip(unknown, read, strict=True)}
        return [known[name] for name in names]

    def read_index(self, name: str) -> IndexManifest:
        """Return an index manifest; raises ``NotFoundError`` if it is missing."""
        known = self._indexes.get(name)
        if known is None:
            path = self._paths.manifest_path(name)
            known = decode_index_manifest(self._file_io.read_bytes(path), path)
            self._indexes.put(name, known, len(known.records))
        return known

    def index_file_names(self, name: str) -> list[str]:
        """Return the index files that an index manifest names."""
        return self.read_index(name).file_names

    def write(self, files: Mapping[str, bytes]) -> None:
        """Create new files by name, all durable when this returns: one round of syncs for all of them."""
        if not files:
            return
        paths = []
        for name, data in files.items():
            path = self._paths.manifest_path(name)
            with self._file_io.open_output(path) as out:
                out.write(data)
            paths.append(path)
        self._file_io.sync(paths)

    def remember_manifest(self, name: str, entries: Sequence[ManifestEntry]) -> None:
        """Cache a manifest that is being written, so that the next commit of this process need not read it."""
        self._manifests.put(name, tuple(entries), len(entries))

    def remember_list(self, name: str, manifests: Sequence[ManifestFileMeta]) -> None:
        """Cache a manifest list, as ``remember_manifest``."""
        self._lists.put(name, tuple(manifests), len(manifests))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files, if they exist."""
        for name in names:
            self._file_io.delete(self._paths.manifest_path(name), below=self._paths.root)


_Value = TypeVar("_Value")


class _Remembered(Generic[_Value]):
    """Cache of the most recently used values, up to a total weight."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._weight = 0
        self._values: OrderedDict[str, tuple[_Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> _Value | None:
        with self._lock:
            found = self._values.get(name)
            if found is None:
                return None
            self._values.move_to_end(name)
            return found[0]

    def put(self, name: str, value: _Value, weight: int) -> None:
        with self._lock:
            if name in self._values:
                return
            self._values[name] = (value, weight + 1)
            self._weight += weight + 1
            while self._weight > self._weight_max and len(self._values) > 1:
                _, (_, dropped) = self._values.popitem(last=False)
                self._weight -= dropped
