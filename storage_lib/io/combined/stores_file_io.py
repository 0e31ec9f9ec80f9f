"""Files on several stores: a table's data directories may be on other stores than its warehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from storage_lib.io.file_io import FileIO, FileStatus
from storage_lib.io.file_io_factory import file_io_of, store_family


@dataclass(frozen=True, eq=False)
class StoresFileIO:
    """``FileIO`` that chooses the store by a path's scheme. Picklable.

    ``home`` stores the warehouse, a path or a URL; ``options`` are the connection's, for all stores.
    """

    home: FileIO
    warehouse: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def has_create_if_absent(self) -> bool:
        """Whether the warehouse's store has it, since commits are written there."""
        return self.home.has_create_if_absent

    def _of(self, path: str) -> FileIO:
        family = store_family(path)
        return self.home if family == store_family(self.warehouse) else file_io_of(path, self.options)

    def read_bytes(self, path: str) -> bytes:
        """See ``FileIO``."""
        return self._of(path).read_bytes(path)

    def exists(self, path: str) -> bool:
        """See ``FileIO``."""
        return self._of(path).exists(path)

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """See ``FileIO``."""
        return self._of(path).create_if_absent(path, data)

    def write_bytes(self, path: str, data: bytes) -> None:
        """See ``FileIO``."""
        self._of(path).write_bytes(path, data)

    def replace(self, path: str, data: bytes) -> None:
        """See ``FileIO``."""
        self._of(path).replace(path, data)

    def list_directory(self, path: str) -> list[FileStatus]:
        """See ``FileIO``."""
        return self._of(path).list_directory(path)

    def delete(self, path: str, *, below: str | None = None) -> None:
        """See ``FileIO``."""
        self._of(path).delete(path, below=below)

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        """See ``FileIO``."""
        self._of(path).delete_tree(path, below=below)

    def rename_directory(self, path: str, new_path: str) -> bool:
        """See ``FileIO``. Both paths are in the warehouse."""
        return self.home.rename_directory(path, new_path)

    def make_directory(self, path: str) -> None:
        """See ``FileIO``."""
        self._of(path).make_directory(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """See ``FileIO``."""
        return self._of(path).open_input(path)

    def open_output(self, path: str) -> pa.NativeFile:
        """See ``FileIO``."""
        return self._of(path).open_output(path)

    def sync(self, paths: list[str]) -> None:
        """See ``FileIO``. Makes one call per kind of store."""
        by_family: dict[str, list[str]] = {}
        for path in paths:
            by_family.setdefault(store_family(path), []).append(path)
        for together in by_family.values():
            self._of(together[0]).sync(together)
