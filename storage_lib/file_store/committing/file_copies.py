"""Copies of data files and index files under new names, for the one commit that adds them."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import crc32c

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.data_file.file_checksum import checksum_in
from storage_lib.file_store.manifest.data_file_paths import DataFilePaths
from storage_lib.file_store.manifest.index_manifest import NO_INDEXES, IndexManifest, IndexPath
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.options.external_paths import ExternalPaths, io_path

_AT_ONCE = 8
_CHUNK_BYTES = 8 << 20


_NUMBERED = re.compile(r".*-\d+\.(?P<extension>.+)")
"""``<prefix><uuid>-<number>.<extension>``; both the prefix and the extension may contain dots and hyphens."""


def extension_of(file_name: str) -> str:
    """Return the part of a data file's name after its number and a dot: ``parquet``, ``parquet-counts``.

    In a name without a number, the part after the last dot.
    """
    numbered = _NUMBERED.fullmatch(file_name)
    return file_name.rpartition(".")[2] if numbered is None else numbered["extension"]


@dataclass(frozen=True, slots=True)
class _Copying:
    source: str
    target: str
    checksum: int | None


@dataclass(kw_only=True)
class FileCopies:
    """Copies for one commit, across all its attempts. They are written where the table's new files are."""

    environment: Environment
    paths: TablePaths
    data_files: DataFilePaths
    external: ExternalPaths
    delete: Callable[[str], None]
    _made: dict[tuple[object, ...], ManifestEntry] = field(default_factory=dict)
    _indexes: dict[str, str] = field(default_factory=dict)
    _written: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, entries: Sequence[ManifestEntry]) -> list[ManifestEntry]:
        """Return the entries of durable copies, in the same order; a file is copied only once.

        Raises ``CorruptFileError`` for a file that was changed after it was written, ``NotFoundError`` for a missing
        one, and any storage error.
        """
        missing = {entry.identity: entry for entry in entries if entry.identity not in self._made}
        if missing:
            made = {identity: self._renamed(entry) for identity, entry in missing.items()}
            self._copy([each for identity in made for each in self._steps(missing[identity], made[identity])])
            self._made |= made
        return [self._made[entry.identity] for entry in entries]

    def of_indexes(self, manifest: IndexManifest, *, but: Collection[str]) -> IndexManifest:
        """Return the manifest with durable copies of its index files, except those in ``but``. Raises as ``of``."""
        sources = {path.file_name: self._index_path(path) for path in manifest.index_paths}
        sources = {name: path for name, path in sources.items() if name not in but}
        missing = [name for name in sources if name not in self._indexes]
        if missing:
            made = {name: self.paths.new_index_name(self.environment.new_name(), 0) for name in missing}
            self._copy([_Copying(sources[name], self.paths.index_path(new), None) for name, new in made.items()])
            self._indexes |= made
        return manifest.with_files({name: self._indexes[name] for name in sources})

    def discard(self, *, but: Sequence[ManifestEntry] = (), indexes: IndexManifest = NO_INDEXES) -> None:
        """Delete all copies, partial ones included, except the files of the entries ``but`` and of ``indexes``."""
        retained = {path for entry in but for path in self.data_files.of(entry)}
        retained |= {self.paths.index_path(name) for name in indexes.file_names}
        for path in self._written:
            if path not in retained:
                self.delete(path)

    def _index_path(self, path: IndexPath) -> str:
        return self.paths.index_path(path.file_name) if path.external_path is None else io_path(path.external_path)

    def _renamed(self, entry: ManifestEntry) -> ManifestEntry:
        file = entry.file
        extension = extension_of(file.file_name)
        name = self.paths.new_data_file_name(self.environment.new_name(), 0, extension)
        # The name of a file's companion usually begins with the file's name and ends with its own type.
        stem, new_stem = (each.removesuffix(f".{extension}") for each in (file.file_name, name))
        extra = tuple(
            new_stem + each.removeprefix(stem) if each.startswith(stem) else f"{new_stem}.{each}"
            for each in file.extra_files
        )
        directory = self.paths.relative_bucket_directory(self.data_files.partition_path(entry.partition), entry.bucket)
        url = self.external.url_of(directory, name, zlib.crc32(name.encode()))
        return replace(entry, file=replace(file, file_name=name, extra_files=extra, external_path=url))

    def _steps(self, entry: ManifestEntry, copy: ManifestEntry) -> list[_Copying]:
        sources = self.data_files.of(entry)
        checksums = [checksum_in(entry.file.embedded_file_index), *(None for _ in entry.file.extra_files)]
        return [_Copying(*each) for each in zip(sources, self.data_files.of(copy), checksums, strict=True)]

    def _copy(self, steps: Sequence[_Copying]) -> None:
        if len(steps) == 1:
            self._copy_one(steps[0])
        else:
            with ThreadPoolExecutor(min(_AT_ONCE, len(steps))) as threads:
                list(threads.map(self._copy_one, steps))
        self.environment.file_io.sync([step.target for step in steps])

    def _copy_one(self, step: _Copying) -> None:
        with self._lock:
            self._written.append(step.target)
        found = 0
        files = self.environment.file_io
        with files.open_input(step.source) as source, files.open_output(step.target) as target:
            while (chunk := source.read_buffer(_CHUNK_BYTES)).size:
                target.write(chunk)
                found = crc32c.crc32c(chunk, found)
        if step.checksum is not None and found != step.checksum:
            message = (
                f"{step.source} was changed after it was written: its CRC-32C is {found:08x}, and {step.checksum:08x} "
                "when it was written. Restore the file from a copy, or roll back to a snapshot or tag without it"
            )
            raise CorruptFileError(message)
