"""Tables of Delta Lake in the directories of a warehouse, ``<database>/<table>`` or ``<database>.db/<table>``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileStatus
from storage_lib.io.file_io_factory import file_io_of, store_family, warehouse_root
from storage_lib.lakes.delta_table import DeltaVersion, version_of
from storage_lib.schema.options.nearest import did_you_mean

_LOG = "_delta_log"
_SUFFIX = ".db"
"""Ending of the directories of databases in a warehouse of Hive or Spark."""


class DeltaCatalog:
    """The databases and tables below a directory. Only reads."""

    def __init__(self, name: str, warehouse: str, options: Mapping[str, str]) -> None:
        """``options`` are those of the warehouse's store, such as ``s3.endpoint``.

        Raises ``InvalidInputError`` for a store that delta-rs does not read, and for options of no store.
        """
        self.name = name
        if urlsplit(warehouse).password is not None:
            message = f"the warehouse of catalog {name} has a password in its URL; give options such as s3.secret-key"
            raise InvalidInputError(message)
        self._root = warehouse_root(warehouse)
        self._file_io = file_io_of(self._root, options)
        self._storage_options = _storage_options_of(self._root, options)

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        return sorted({each.name.removesuffix(_SUFFIX) for each in self._directories(self._root)})

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted. Raises ``NotFoundError`` if it does not exist."""
        found = [
            table.name
            for directory in self._homes(database)
            for table in self._directories(directory)
            if self._is_table(f"{directory}/{table.name}")
        ]
        return sorted({*found})

    def version(
        self, database: str, table: str, *, number: int | None = None, before: datetime | None = None
    ) -> DeltaVersion:
        """Return a version of a table by its number, or the newest that was committed until ``before``, or ever.

        Raises ``NotFoundError`` if the database or the table does not exist, ``InvalidInputError`` if it can't be read.
        """
        name = f"{self.name}.{database}.{table}"
        for directory in self._homes(database):
            location = f"{directory}/{table}"
            # Only names that are listed: a name such as "../other" would lead out of the warehouse.
            if any(each.name == table for each in self._directories(directory)) and self._is_table(location):
                if before is not None:
                    self._refuse_earlier(name, location, before)
                if "%" in location:
                    message = f"table {name} is in {location}; delta-rs opens no directory that has a % in its name"
                    raise InvalidInputError(message)
                return version_of(name, location, self._storage_options, number=number, before=before)
        message = f"table {name} does not exist{did_you_mean(table, self.tables(database))}"
        raise NotFoundError(message)

    def _refuse_earlier(self, name: str, location: str, before: datetime) -> None:
        """Refuse a time before the oldest commit, for which delta-rs returns that commit."""
        log = self._file_io.list_directory(f"{location}/{_LOG}")
        millis = min((each.modified_ms for each in log if each.name.endswith(".json")), default=0)
        oldest = datetime.fromtimestamp(millis / 1000, UTC)
        if before < oldest:
            message = f"table {name} has no version until {before}; its oldest one is of {oldest}"
            raise InvalidInputError(message)

    def _homes(self, database: str) -> list[str]:
        there = {each.name for each in self._directories(self._root)}
        names = [name for name in (database, database + _SUFFIX) if name in there]
        if not names:
            message = f"database {self.name}.{database} does not exist{did_you_mean(database, self.databases())}"
            raise NotFoundError(message)
        return [f"{self._root}/{name}" for name in names]

    def _directories(self, path: str) -> Iterator[FileStatus]:
        return (each for each in self._file_io.list_directory(path) if each.is_directory and each.name[:1] not in "._")

    def _is_table(self, location: str) -> bool:
        return any(True for _ in self._file_io.list_directory(f"{location}/{_LOG}"))


def _storage_options_of(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the warehouse's store as delta-rs names them, which opens stores by the same library."""
    family = store_family(root)
    if family == "file":
        return {}
    if family != "object store":
        message = f"tables of Delta Lake are read from disks and object stores, not from {root}"
        raise InvalidInputError(message)
    from storage_lib.io.remote.object_store_settings import settings_by_store_name

    return settings_by_store_name(root, options)
