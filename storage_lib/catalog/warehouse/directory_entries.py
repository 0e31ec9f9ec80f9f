"""Entries in a directory tree: ``<warehouse>/<database>.db/<table>`` is a table if it contains ``schema/schema-0``.

A database exists if its directory does. CREATE DATABASE writes a file ``.database`` with the properties, because object
stores have no empty directories and creating a file decides between concurrent creators. Other engines ignore it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from storage_lib.catalog.locks.catalog_lock import Hold, NoHold
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.json_document import decode_json
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.table_schema import TableSchema

_SUFFIX = ".db"
_MARK = ".database"


class DirectoryEntries:
    """``TableEntries`` of the tables below ``warehouse``."""

    are_apart = False

    def __init__(self, file_io: FileIO, warehouse: str) -> None:
        self._file_io = file_io
        self._warehouse = warehouse

    @contextmanager
    def lock(self, name: TableName) -> Iterator[Hold]:  # noqa: ARG002  the creation of schema-0 decides
        """Take no lock: one atomic step creates a table."""
        yield NoHold()

    def place(self, name: TableName) -> str | None:
        """Return the table's home, whether or not it has files."""
        return self.home(name)

    def home(self, name: TableName) -> str:
        """Return the directory that the name determines."""
        return f"{self._warehouse}/{name.directory}"

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:  # noqa: ARG002
        """Do nothing: schema-0 is the entry."""
        return True

    def update(self, name: TableName, schema: TableSchema) -> None:
        """Do nothing: the schema is the entry."""

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Do nothing: the entry is deleted with the schema."""

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:  # noqa: ARG002
        """Do nothing: the entry moved with the directory."""
        return True

    def names(self, database: str | None) -> list[TableName]:
        """Return the names of directories that hold a schema."""
        found = [
            name
            for each in self._database_directories()
            if database is None or each == database
            for entry in self._file_io.list_directory(f"{self._warehouse}/{each}{_SUFFIX}")
            if entry.is_directory and (name := _table_name(each, entry.name)) is not None
        ]
        return [name for name in found if self._is_there(name)]

    def databases(self) -> list[str]:
        """Return the names of directories that end in ``.db``, sorted."""
        return sorted(self._database_directories())

    def create_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create the directory of a database, with its properties."""
        if database in self._database_directories():
            return False
        return self._file_io.create_if_absent(self._mark(database), json.dumps(dict(properties)).encode())

    def database_properties(self, database: str) -> dict[str, str] | None:
        """Return the properties with which the database was created."""
        if database not in self._database_directories():
            return None
        mark = self._mark(database)
        try:
            data = self._file_io.read_bytes(mark)
        except NotFoundError:
            return {}
        return decode_json(
            data,
            lambda found: {str(key): str(value) for key, value in found.items()},
            lambda defect: f"{mark} does not hold the properties of database {database}: {defect}",
        )

    def change_database(self, database: str, updates: Mapping[str, str], removals: Collection[str]) -> bool:
        """Replace the file of properties. Of two changes at once, one may be lost."""
        found = self.database_properties(database)
        if found is None:
            return False
        changed = {**{key: value for key, value in found.items() if key not in removals}, **updates}
        self._file_io.replace(self._mark(database), json.dumps(changed).encode())
        return True

    def drop_database(self, database: str) -> None:
        """Delete the database's directory. Raises ``InvalidInputError`` if it holds files of others."""
        place = f"{self._warehouse}/{database}{_SUFFIX}"
        # A drop that fails in its last step leaves a table's directory empty.
        others = [
            entry.name
            for entry in self._file_io.list_directory(place)
            if entry.name != _MARK and not (entry.is_directory and self._is_empty(f"{place}/{entry.name}"))
        ]
        if others:
            message = (
                f"database {database} holds no table, but {', '.join(sorted(others))} in {place}; "
                "`dynamic-table orphans` lists what they are"
            )
            raise InvalidInputError(message)
        self._file_io.delete_tree(f"{self._warehouse}/{database}{_SUFFIX}")

    def _is_empty(self, directory: str) -> bool:
        return not list(self._file_io.list_directory(directory))

    def _database_directories(self) -> list[str]:
        return [
            entry.name.removesuffix(_SUFFIX)
            for entry in self._file_io.list_directory(self._warehouse)
            if entry.is_directory and entry.name.endswith(_SUFFIX)
        ]

    def _mark(self, database: str) -> str:
        return f"{self._warehouse}/{database}{_SUFFIX}/{_MARK}"

    def _is_there(self, name: TableName) -> bool:
        return SchemaHistory(self._file_io, TablePaths(self.home(name))).latest_id() is not None


def _table_name(database: str, table: str) -> TableName | None:
    """Return the name, or None for a directory that is not a table's."""
    try:
        return TableName.parse_plain(f"{database}.{table}")
    except InvalidInputError:
        return None
