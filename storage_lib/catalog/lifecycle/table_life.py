"""Create, rename and drop a table in idempotent steps that are the same for all entry stores.

    create   schema-0 (fails if another process wrote it) ─▶ topic ─▶ entry; undone if a step fails
    drop     dropped (what to delete) ─▶ entry ─▶ schema ─▶ topic ─▶ files; the next caller completes a crashed drop
    rename   directory ─▶ entry; repeat it to finish an interrupted one

If entries are stored apart from the files, a lock serialises the creation and dropping of a table. So files without an
entry were left by a crashed process or belong to another catalog. The next creator deletes those without a snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from storage_lib.catalog.locks.catalog_lock import Hold
from storage_lib.catalog.table_entries import TableEntries
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknownError,
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    note_outcome,
)
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.cleanup.file_deletion import FileDeletion, declared_by_any_schema
from storage_lib.iceberg.publish.view_placement import drop_view
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.options.external_paths import declared_directories, io_path
from storage_lib.schema.options.table_options import IcebergStorage, TableOptions
from storage_lib.schema.placing.layout import TOPIC_OPTION, earlier_topics
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.protocol.outcome import outcome

_LOGGER = logging.getLogger(__name__)


class TableLife:
    """Steps for the tables of one catalog. ``opened`` returns a table object for a name, directory and schema."""

    def __init__(
        self,
        environment: Environment,
        entries: TableEntries,
        opened: Callable[[TableName, str, TableSchema], DynamicTable],
    ) -> None:
        self._environment = environment
        self._stores = environment.stores
        self._file_io = environment.file_io
        self._entries = entries
        self._opened = opened

    def create(self, name: TableName, schema: TableSchema, hold: Hold) -> DynamicTable:
        """Create a table that does not exist; the caller holds its lock. See ``Catalog.create_table``."""
        location = self._entries.home(name)
        table = self._opened(name, location, schema)
        if table.inspect.latest_snapshot_id() is not None:
            raise AlreadyExistsError(self._what_lies_at(name, location))
        if self._entries.are_apart:
            self._clear(name, location, hold)
        claims = ExternalClaims(self._stores, location)
        directories = declared_directories(schema.options)
        for directory in directories:
            claims.claim(directory, is_new=True)
        if not self._schemas(location).append(schema):
            message = f"table {name} was created concurrently by another process; load it"
            raise AlreadyExistsError(message)
        try:
            if table.log is not None:
                table.log.create()
            hold.check()
            self._enter(name, location, schema)
        except CommitOutcomeUnknownError:
            raise
        except BaseException as error:
            try:
                hold.check()
                self._delete_created(location, schema, claims)
            except StorageError:
                note_outcome(error, committed=None)
            raise
        return table

    def _delete_created(self, location: str, schema: TableSchema, claims: ExternalClaims) -> None:
        """Delete a table whose creation failed, unless others have dropped it and created another one meanwhile."""
        try:
            if self._schemas(location).read(schema.id) != schema.to_json():
                return
        except NotFoundError:
            return
        self._file_io.delete_tree(location)
        for directory in declared_directories(schema.options):
            claims.release(directory)

    def drop(self, name: TableName) -> bool:
        """Delete a table; the caller holds its lock. False if there is neither a table nor an unfinished drop."""
        place = self._entries.place(name)
        schema = None if place is None else self._last_readable(name, place)
        if place is not None and schema is not None:
            self._file_io.create_if_absent(TablePaths(place).dropped_path, schema.to_json())
        # The file ``dropped`` decides the drop, but the table exists until a caller completes it.
        with outcome(committed=None):
            if self.finish_drop(name):
                return True
        if place is not None and self._entries.are_apart:
            self._remove_bare_entry(name, place)
            return True
        return False

    def finish_drop(self, name: TableName) -> bool:
        """Complete an unfinished drop; False if there is none."""
        paths = TablePaths(self._entries.place(name) or self._entries.home(name))
        if not self._file_io.exists(paths.dropped_path):
            return False
        self._finish_noted_drop(name, paths)
        return True

    def _finish_noted_drop(self, name: TableName, paths: TablePaths) -> None:
        note = self._file_io.read_bytes(paths.dropped_path)
        schema = TableSchema.from_json(note)
        self._entries.remove(name, lambda: self._is_noted(paths, note))
        self._drop_files_outside(name, paths, note)
        self._unregister(name, paths.root, schema)
        drop_view(self._file_io, schema, paths.root)
        self._file_io.delete_tree(paths.schema_directory, below=paths.root)
        # A writer may have registered it meanwhile; from now on each one sees that the table is gone.
        self._unregister(name, paths.root, schema)
        self._drop_logs(name, paths.root, schema)
        # The note is deleted last, with the directory, so that the next caller resumes after a crash.
        for entry in self._file_io.list_directory(paths.root):
            if not self._is_noted(paths, note):
                return
            if entry.is_directory or entry.is_link:
                self._file_io.delete_tree(f"{paths.root}/{entry.name}", below=paths.root)
        if self._is_noted(paths, note):
            self._file_io.delete_tree(paths.root)

    def _unregister(self, name: TableName, location: str, schema: TableSchema) -> None:
        """Remove the table at ``location`` from the catalog of others that it is registered in, if it is."""
        storage = TableOptions.parse(schema.options).iceberg_storage
        if not isinstance(storage, IcebergStorage) or not storage.is_registered:
            return
        view = self._opened(name, location, schema).context.iceberg_view
        if view is not None:
            view.entry.remove()

    def _drop_files_outside(self, name: TableName, paths: TablePaths, note: bytes) -> None:
        """Delete data files outside of the table's directory. Runs before its schemas, which name them, are deleted."""
        declared = declared_by_any_schema(self._file_io, paths)
        claims = ExternalClaims(self._stores, paths.root)
        ours = [directory for directory in declared if claims.is_ours(directory)]
        if len(ours) < len(declared):
            self._drop_named_files(name, paths, TableSchema.from_json(note))
        for directory in ours:
            if not self._is_noted(paths, note):
                return
            self._stores.delete_tree(io_path(directory))

    def _drop_named_files(self, name: TableName, paths: TablePaths, schema: TableSchema) -> None:
        """Delete only files named by metadata, for directories that the table has not claimed and may share."""
        try:
            named = self._opened(name, paths.root, schema).inspect.data_paths()
        except StorageError as error:
            _LOGGER.warning("table %s is dropped; some of its files may remain in data directories: %s", name, error)
            return
        FileDeletion(self._environment, paths, schema).delete_all(
            sorted(path for path in named if not path.startswith(f"{paths.root}/"))
        )

    def _drop_logs(self, name: TableName, location: str, schema: TableSchema) -> None:
        """Drop the table's log and the logs that it had before it was rescaled."""
        earlier = [replace(schema, options={**schema.options, TOPIC_OPTION: topic}) for topic in earlier_topics(schema)]
        for each in (schema, *earlier):
            log = self._opened(name, location, each).log
            if log is None:
                continue
            try:
                log.drop()
            except NotFoundError as error:
                # Deleted by hand and recreated by another program: the topic is no longer our log.
                _LOGGER.warning("table %s is dropped; its logs: %s", name, error)
            log.close()

    def take_away(self, name: TableName) -> bool:
        """Delete the files without an entry at a name's home, under its lock; False if they include snapshots."""
        location = self._entries.home(name)
        left = self._schemas(location).latest()
        if left is None:
            self._file_io.delete_tree(location)
            return True
        if self._opened(name, location, left).inspect.latest_snapshot_id() is not None:
            return False
        self._file_io.create_if_absent(TablePaths(location).dropped_path, left.to_json())
        return self.finish_drop(name)

    def rename(self, name: TableName, new_name: TableName) -> None:
        """Move a table; the caller holds the locks of both names. The log keeps its topic, which the schema names."""
        place, target = self._entries.place(name), self._entries.home(new_name)
        is_there = place is not None and self._schemas(place).latest_id() is not None
        has_moved = self._entries.are_apart and self._schemas(target).latest_id() is not None
        if place is None or not (is_there or has_moved):
            message = f"table {name} does not exist, so it cannot be renamed"
            raise NotFoundError(message)
        schema = self._schemas(place).latest() if is_there else None
        if schema is not None:
            # While the metadata is there that an entry in a catalog of others names. The next commit makes a new one.
            self._unregister(name, place, schema)
        if is_there and not self._file_io.rename_directory(place, target):
            message = f"table {name} can't be renamed: table {new_name}, or files of one, already exists at {target}"
            raise AlreadyExistsError(message)
        if schema is not None:
            # A writer may have registered it meanwhile; from now on each one sees that the table is elsewhere.
            self._unregister(name, place, schema)
        claims = ExternalClaims(self._stores, place)
        for directory in declared_by_any_schema(self._file_io, TablePaths(target)):
            claims.hand_over(directory, target)
        moved = self._schemas(target).latest()
        if moved is not None:
            drop_view(self._file_io, moved, place)
        with outcome(committed=None):
            is_entered = self._entries.rename(name, new_name, target)
        if not is_entered:
            message = (
                f"table {name} can't be renamed: the catalog already has an entry {new_name}; drop it, "
                "then rename again"
            )
            raise AlreadyExistsError(message)

    def _last_readable(self, name: TableName, place: str) -> TableSchema | None:
        """Return the newest readable schema of a table to be dropped: an earlier one suffices for that."""
        schemas, damage = self._schemas(place), None
        for schema_id in reversed(schemas.ids()):
            try:
                return schemas.load(schema_id)
            except (CorruptFileError, InvalidInputError) as error:
                _LOGGER.warning("table %s is dropped by the log settings of an earlier schema: %s", name, error)
                damage = error
        if damage is None:
            return None
        message = (
            f"table {name} can't be dropped, for none of its schemas can be read, and so nobody knows its log: "
            f"{damage}. Delete {place} by hand; `dynamic-table orphans --topics` finds the topic then"
        )
        raise CorruptFileError(message) from damage

    def _enter(self, name: TableName, location: str, schema: TableSchema) -> None:
        if not self._entries.add(name, location, schema):
            message = f"table {name} was created concurrently by another process; load it"
            raise AlreadyExistsError(message)

    def _clear(self, name: TableName, location: str, hold: Hold) -> None:
        """Delete the remains of a creator that crashed before it wrote the entry. It held the lock that we hold now."""
        left = self._schemas(location).latest()
        place = self._entries.place(name)
        if place is not None:
            self._remove_bare_entry(name, place)
        if left is None:
            return
        hold.check()
        self._file_io.create_if_absent(TablePaths(location).dropped_path, left.to_json())
        self.finish_drop(name)

    def _remove_bare_entry(self, name: TableName, place: str) -> None:
        """Remove the entry of a table whose files were deleted by hand."""
        self._entries.remove(name, lambda: self._schemas(place).latest_id() is None)

    def _what_lies_at(self, name: TableName, location: str) -> str:
        if self._entries.are_apart and self._schemas(location).latest_id() is not None:
            return (
                f"table {name} can't be created at {location}: a table without an entry in this catalog is "
                "stored there. Give "
                "it one by `dynamic-table orphans --register`, or delete that directory first"
            )
        return (
            f"table {name} can't be made at {location}: there are snapshots of a table that is gone, left by "
            "a writer that committed while it was dropped. Delete that directory first"
        )

    def _schemas(self, location: str) -> SchemaHistory:
        return SchemaHistory(self._file_io, TablePaths(location))

    def _is_noted(self, paths: TablePaths, note: bytes) -> bool:
        """Whether the drop is still incomplete: another process may have completed it and recreated the table."""
        try:
            return self._file_io.read_bytes(paths.dropped_path) == note
        except NotFoundError:
            return False
