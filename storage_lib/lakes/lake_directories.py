"""Tables in the directories of a warehouse: ``<database>/<table>`` or ``<database>.db/<table>``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileIO, FileStatus
from storage_lib.io.file_io_factory import file_io_of, store_family, warehouse_root
from storage_lib.schema.options.nearest import did_you_mean

_SUFFIX = ".db"
"""Ending of the directories of databases in a warehouse of Hive or Spark."""


class LakeDirectories:
    """The databases and tables below a directory; a table has a directory ``marker`` that is not empty."""

    def __init__(self, name: str, warehouse: str, options: Mapping[str, str], *, marker: str, readers: str) -> None:
        """``name`` is the catalog's; ``options`` are those of the warehouse's store, such as ``s3.endpoint``.

        Raises ``InvalidInputError`` for a store other than disks and object stores, from which ``readers`` (the tables
        of a format) can't be read, and for options of no store.
        """
        self.name = name
        if urlsplit(warehouse).password is not None:
            message = f"the warehouse of catalog {name} has a password in its URL; give options such as s3.secret-key"
            raise InvalidInputError(message)
        self.root = warehouse_root(warehouse)
        if store_family(self.root) not in ("file", "object store"):
            message = f"{readers} are read from disks and object stores, not from {self.root}"
            raise InvalidInputError(message)
        self.file_io: FileIO = file_io_of(self.root, options)
        self._marker = marker

    def databases(self) -> list[str]:
        """See ``LakeCatalog``."""
        return sorted({each.name.removesuffix(_SUFFIX) for each in self._directories(self.root)})

    def tables(self, database: str) -> list[str]:
        """See ``LakeCatalog``."""
        found = [
            table.name
            for directory in self._homes(database)
            for table in self._directories(directory)
            if self._is_table(f"{directory}/{table.name}")
        ]
        return sorted({*found})

    def location(self, database: str, table: str) -> str:
        """Return the directory of a table. Raises ``NotFoundError`` if the database or the table does not exist."""
        for directory in self._homes(database):
            location = f"{directory}/{table}"
            # Only names that are listed: a name such as "../other" would lead out of the warehouse.
            if any(each.name == table for each in self._directories(directory)) and self._is_table(location):
                return location
        message = f"table {self.name}.{database}.{table} does not exist{did_you_mean(table, self.tables(database))}"
        raise NotFoundError(message)

    def _homes(self, database: str) -> list[str]:
        there = {each.name for each in self._directories(self.root)}
        names = [name for name in (database, database + _SUFFIX) if name in there]
        if not names:
            message = f"database {self.name}.{database} does not exist{did_you_mean(database, self.databases())}"
            raise NotFoundError(message)
        return [f"{self.root}/{name}" for name in names]

    def _directories(self, path: str) -> Iterator[FileStatus]:
        return (each for each in self.file_io.list_directory(path) if each.is_directory and each.name[:1] not in "._")

    def _is_table(self, location: str) -> bool:
        return any(True for _ in self.file_io.list_directory(f"{location}/{self._marker}"))
