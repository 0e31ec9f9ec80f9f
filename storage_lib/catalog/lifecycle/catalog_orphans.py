"""Remains of interrupted statements: entries without files, files without an entry, incomplete drops.

None of them is a table, and repeating the interrupted statement removes them; this cleanup finds the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from storage_lib.catalog.lifecycle.table_life import TableLife
from storage_lib.catalog.table_entries import TableEntries
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.file_store.snapshot.schema_in_force import schema_in_force
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.numbered_files import NumberedFiles
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.table_schema import TableSchema

_SUFFIX = ".db"


class OrphanKind(StrEnum):
    """Kind of an entry or directory that lacks its counterpart."""

    ENTRY_WITHOUT_FILES = "entry without files"
    FILES_WITHOUT_ENTRY = "files without an entry"
    TABLE_WITHOUT_ENTRY = "a table with rows, but without an entry"
    HALF_DROPPED = "an unfinished drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """One orphan; ``modified_ms`` is the newest time in its root and schema directories (epoch ms), 0 if empty."""

    name: TableName
    kind: OrphanKind
    location: str
    modified_ms: int


class CatalogOrphans:
    """Finds, deletes and registers the orphans of one catalog, below its warehouse."""

    def __init__(self, environment: Environment, entries: TableEntries, life: TableLife, warehouse: str) -> None:
        self._file_io = environment.file_io
        self._entries = entries
        self._life = life
        self._warehouse = warehouse

    def find(self) -> Iterator[Orphan]:
        """Check every entry and every directory that may hold a table; yield the orphans."""
        entered = {name: self._entries.place(name) for name in self._entries.names(None)}
        for name, place in entered.items():
            if place is not None and self._entries.are_apart and not self._has_schema(place):
                yield self._orphan(name, OrphanKind.ENTRY_WITHOUT_FILES, place)
        for name in self._directories():
            found = self._state_of(name, entered=name in entered)
            if found is not None:
                yield self._orphan(name, found, self._entries.home(name))

    def mend(self, orphan: Orphan) -> bool:
        """Delete the orphan under the name's lock; False if it has rows or is a complete table by now."""
        with self._entries.lock(orphan.name):
            if orphan.kind is OrphanKind.ENTRY_WITHOUT_FILES:
                self._entries.remove(orphan.name, lambda: not self._has_schema(orphan.location))
                return True
            now = self._state_of(orphan.name, entered=self._has_entry(orphan.name))
            if now is OrphanKind.HALF_DROPPED:
                return self._life.finish_drop(orphan.name)
            if now is OrphanKind.FILES_WITHOUT_ENTRY:
                return self._life.take_away(orphan.name)
            return False

    def finish_drops(self, database: str) -> None:
        """Finish interrupted drops of a database's tables, which are no longer listed but still have files."""
        for name in self._directories():
            if name.database == database and self._file_io.exists(TablePaths(self._entries.home(name)).dropped_path):
                with self._entries.lock(name):
                    self._life.finish_drop(name)

    def register(self, orphan: Orphan) -> bool:
        """Add an entry for a table without one; False if it is not a table or has an entry by now."""
        with self._entries.lock(orphan.name):
            schema = SchemaHistory(self._file_io, TablePaths(orphan.location)).latest()
            has_entry = self._entries.place(orphan.name) is not None
            if schema is None or has_entry or self._file_io.exists(TablePaths(orphan.location).dropped_path):
                return False
            return self._entries.add(orphan.name, orphan.location, schema)

    def schemas(self) -> Iterator[tuple[TableName, list[TableSchema]]]:
        """Yield the schemas of every table, including incomplete and half-dropped ones.

        These are the newest schema, and the one in force if it differs. Raises for a damaged schema.
        """
        named = {*self._entries.names(None), *self._directories()}
        for name in sorted(named, key=str):
            paths = TablePaths(self._entries.place(name) or self._entries.home(name))
            schema = SchemaHistory(self._file_io, paths).latest()
            if schema is None and self._file_io.exists(paths.dropped_path):
                schema = TableSchema.from_json(self._file_io.read_bytes(paths.dropped_path))
            if schema is not None:
                in_force = schema_in_force(self._file_io, paths) or schema
                yield name, [schema] if in_force.id == schema.id else [schema, in_force]

    def _state_of(self, name: TableName, *, entered: bool) -> OrphanKind | None:
        """Return why a directory is an orphan; None for a table."""
        paths = TablePaths(self._entries.home(name))
        if self._file_io.exists(paths.dropped_path):
            return OrphanKind.HALF_DROPPED
        if entered:
            return None
        has_rows = NumberedFiles(self._file_io, paths.snapshot_directory, "snapshot-", hints=True).latest_id()
        if self._has_schema(paths.root):
            return OrphanKind.FILES_WITHOUT_ENTRY if has_rows is None else OrphanKind.TABLE_WITHOUT_ENTRY
        return OrphanKind.FILES_WITHOUT_ENTRY

    def _directories(self) -> Iterator[TableName]:
        for database in self._file_io.list_directory(self._warehouse):
            if not (database.is_directory and database.name.endswith(_SUFFIX)):
                continue
            for table in self._file_io.list_directory(f"{self._warehouse}/{database.name}"):
                name = _plain_name(database.name.removesuffix(_SUFFIX), table.name)
                if table.is_directory and name is not None:
                    yield name

    def _orphan(self, name: TableName, kind: OrphanKind, location: str) -> Orphan:
        modified = [
            each.modified_ms
            for directory in (location, TablePaths(location).schema_directory)
            for each in self._file_io.list_directory(directory)
        ]
        return Orphan(name=name, kind=kind, location=location, modified_ms=max(modified, default=0))

    def _has_schema(self, location: str) -> bool:
        return SchemaHistory(self._file_io, TablePaths(location)).latest_id() is not None

    def _has_entry(self, name: TableName) -> bool:
        place = self._entries.place(name)
        return place is not None and (self._entries.are_apart or self._has_schema(place))


def _plain_name(database: str, table: str) -> TableName | None:
    """Return the name, or None for a directory that is not a table's."""
    try:
        return TableName.parse_plain(f"{database}.{table}")
    except InvalidInputError:
        return None
