"""Catalog of tables by name: create, load, alter, rename and drop tables and databases.

``TableEntries`` stores the entries; ``TableLife`` orders the steps of creating and deleting a table. Only this module
turns options into stores.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace

import pyarrow as pa

from storage_lib.built_once import built_once
from storage_lib.catalog.added_log import open_added_log
from storage_lib.catalog.declaration.connection_options import refuse_unknown_of_connection
from storage_lib.catalog.declaration.frozen_options import frozen_options, state_options
from storage_lib.catalog.declaration.log_refusals import refuse_log
from storage_lib.catalog.declaration.table_drift import declared_differences
from storage_lib.catalog.lifecycle.catalog_orphans import CatalogOrphans
from storage_lib.catalog.lifecycle.table_life import TableLife
from storage_lib.catalog.locks.catalog_lock import LockFactory
from storage_lib.catalog.logs.kafka_log import kafka_orphan_topics, open_kafka_log
from storage_lib.catalog.logs.orphan_topics import OrphanTopics
from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.catalog.table_entries import TableEntries
from storage_lib.catalog.table_name import TableName, database_name
from storage_lib.catalog.views.catalog_views import CatalogViews
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from storage_lib.file_store.snapshot.schema_in_force import schema_in_force
from storage_lib.iceberg.view_refusals import refuse_view
from storage_lib.io.combined.stores_file_io import StoresFileIO
from storage_lib.io.environment import Environment
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES, warehouse_root
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.log_store.external.source_metadata import refuse_declared_metadata
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.evolution.schema_changes import SchemaChange, TypeLike
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.unsupported import refuse_unsupported
from storage_lib.schema.options.default_values import with_declared_defaults
from storage_lib.schema.options.option_precedence import effective_options
from storage_lib.schema.options.secret_text import without_password
from storage_lib.schema.options.table_options import UUID_OPTION, LogSystem, TableOptions, canonical_options
from storage_lib.schema.table_schema import Columns, TableSchema, new_table_schema
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.protocol.outcome import outcome, reports_outcome
from storage_lib.table.protocol.table_address import TableAddress

_LOGGER = logging.getLogger(__name__)
LOCATION = "location"
"""Property of a database: the directory of its tables, for catalogs that keep one."""


class Catalog:
    """Tables by name, with their files below ``warehouse``.

    ``options`` are defaults for new tables, and settings of the connection such as servers and credentials. CREATE
    stores the former in the table; the latter are never stored, and the catalog supplies them each time it opens a
    table.
    """

    def __init__(
        self, warehouse: str, options: Mapping[str, str] | None, *, environment: Environment, entries: TableEntries
    ) -> None:
        self.warehouse = warehouse_root(warehouse)
        self.options = canonical_options(options)
        self._environment = environment
        self._entries = entries
        # Excludes the secrets of other servers: a file IO may be sent to a task.
        stores = {key: text for key, text in self.options.items() if key.startswith(STORE_OPTION_PREFIXES)}
        self._stores = StoresFileIO(environment.file_io, self.warehouse, stores)
        TableOptions.parse(self.options)
        refuse_unknown_of_connection(self.options)

    @built_once
    def _life(self) -> TableLife:
        return TableLife(self._with_stores(self._environment), self._entries, self._table)

    @built_once
    def views(self) -> CatalogViews:
        """The views of this catalog."""
        return CatalogViews(self._environment.file_io, self._entries, self.table_exists)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {without_password(self.warehouse)}>"

    def supports_managed_table(self) -> bool:
        """Return True: a CREATE without a connector creates a table with its own storage (FLIP-188)."""
        return True

    @property
    def lock_factory(self) -> LockFactory | None:
        """Creates this catalog's lock in any process; None if the catalog has none."""
        return None

    @reports_outcome
    def create_table(
        self,
        name: str,
        schema: Columns | Mapping[str, TypeLike] | TableDescriptor,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> DynamicTable:
        """Create a table and its log.

        ``schema`` is an Arrow schema, a mapping such as ``{"name": "VARCHAR(20)"}``, or SQL text such as ``"id INT NOT
        NULL"``. In a mapping, ``BIGINT METADATA FROM 'value.source.lsn'`` is a column that ``ingest`` fills from the
        metadata of records. With ``if_not_exists`` an existing table is returned unchanged, except that a missing log
        is created; if the table differs from the declaration, a warning in the log (``logging``) lists the differences.

        Raises ``InvalidInputError`` for an invalid declaration, ``AlreadyExistsError`` if a table or another owner's
        topic has the name, ``UnavailableError`` if Kafka does not answer. After an error, no part of the table is left.
        """
        table_name = TableName.parse_plain(name)
        descriptor = _descriptor(schema, primary_key, partition_by, options, comment)
        with self._entries.lock(table_name) as hold:
            self._life.finish_drop(table_name)
            if self.table_exists(name):
                if not if_not_exists:
                    message = f"table {name} already exists; load it, drop it, or create it with if_not_exists=True"
                    raise AlreadyExistsError(message)
                table = self.load_table(name)
                _warn_of_differences(table, descriptor)
                if table.log is not None:
                    table.log.create()
                return table
            if self.views.exists(name):
                raise _is_view(name)
            table = self._life.create(table_name, self._new_schema(table_name, descriptor), hold)
            table.context.refresh_view()
            if self.views.exists(name):  # another process created it after the look-up above
                with outcome(committed=None):
                    self._life.drop(table_name)
                raise _is_view(name)
            return table

    def load_table(self, name: str) -> DynamicTable:
        """Load a table, a branch of it (``db.table$branch_dev``) or a state (``create_state``).

        Raises ``NotFoundError`` if it does not exist.
        """
        table_name = TableName.parse(name)
        if table_name.system_table is not None:
            message = f"{name} is a system table, which can only be read: use system_table({name!r})"
            raise InvalidInputError(message)
        entry = self._entries.place(table_name.plain)
        place = None if entry is None else table_name.place_in(entry)
        schema = None if place is None else schema_in_force(self._environment.file_io, TablePaths(place))
        if place is None or schema is None:
            missing = table_name if table_name.state else table_name.plain
            if self.views.exists(str(table_name.plain)):
                message = f"{table_name.plain} is a view, which only SQL reads"
                raise InvalidInputError(message)
            known = ", ".join(self.list_tables()) or "none"
            message = f"table {missing} does not exist in {self.warehouse}; existing tables: {known}"
            raise NotFoundError(message)
        table = self._table(replace(table_name, branch=None), place, schema)
        return table if table_name.branch is None else table.branches.open(table_name.branch)

    def create_state(
        self, name: str, state: str, columns: Columns, *, primary_key: Sequence[str], options: Mapping[str, str]
    ) -> DynamicTable:
        """Create a table inside the directory of the materialized table ``name``, for what its refreshes remember.

        It has no entry in the catalog: it is not listed, moves and is dropped with the table, and is loaded by its
        name ``db.table$state_<state>`` only. It has no log, and its files are below its own directory. ``options`` are
        stored as they are. Raises ``NotFoundError`` if the table does not exist, ``AlreadyExistsError`` if it has this
        state.
        """
        table = self.load_table(name)
        state_name = TableName.parse_plain(name).of_state(state)
        location = state_name.place_in(table.location)
        schema = new_table_schema(
            columns,
            primary_keys=primary_key,
            options={**state_options(options), UUID_OPTION: self._environment.new_name()},
            time_millis=self._environment.clock.now_millis(),
        )
        if not self._schemas(location).append(schema):
            message = f"table {state_name} already exists"
            raise AlreadyExistsError(message)
        return self._table(state_name, location, schema)

    def states(self, name: str) -> list[str]:
        """Return the ids of the states of a table, sorted; ``NotFoundError`` if the table does not exist."""
        directory = TableName.parse_plain(name).states_in(self.load_table(name).location)
        found = self._environment.file_io.list_directory(directory)
        return sorted(entry.name for entry in found if entry.is_directory)

    def drop_state(self, name: str, state: str) -> None:
        """Delete the files of a state of a table. Idempotent; ``NotFoundError`` if the table does not exist."""
        table = self.load_table(name)
        location = TableName.parse_plain(name).of_state(state).place_in(table.location)
        self._environment.file_io.delete_tree(location, below=table.location)

    def system_table(self, name: str) -> pa.Table:
        """Return a system table, ``db.table$snapshots`` or ``db.table$branch_dev$files``; see ``TableInspection``."""
        table_name = TableName.parse(name)
        if table_name.system_table is None:
            message = f"{name} is not the name of a system table; write for example {name}$snapshots"
            raise InvalidInputError(message)
        return self.load_table(str(replace(table_name, system_table=None))).inspect.system_table(
            table_name.system_table
        )

    @reports_outcome
    def alter_table(self, name: str, changes: Sequence[SchemaChange]) -> DynamicTable:
        """Alter a table as ``DynamicTable.alter`` does; ``NotFoundError`` if it does not exist."""
        return self.load_table(name).alter(*changes)

    @reports_outcome
    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a table, its log and its files; ``NotFoundError`` if it does not exist, unless ``if_exists``.

        If a drop was interrupted, or its topic could not be deleted, repeat the call to complete it.
        """
        table_name = TableName.parse_plain(name)
        with self._entries.lock(table_name):
            if not self._life.drop(table_name) and not if_exists:
                message = f"table {name} does not exist in {self.warehouse}, so it cannot be dropped"
                raise NotFoundError(message)

    @reports_outcome
    def rename_table(self, name: str, new_name: str) -> DynamicTable:
        """Rename a table, also to another database. Its directory moves; its log keeps the topic.

        If a rename was interrupted, repeat the call to complete it. Processes that have the table open must load it
        again. Raises ``NotFoundError`` if the table does not exist, ``AlreadyExistsError`` if the new name is in use,
        and ``InvalidInputError`` on a store that cannot move a directory atomically (object stores).
        """
        old, new = TableName.parse_plain(name), TableName.parse_plain(new_name)
        with ExitStack() as locks:
            for each in sorted({old, new}, key=str):  # a global order, which prevents deadlocks
                locks.enter_context(self._entries.lock(each))
            self._life.finish_drop(new)
            if self.table_exists(new_name):
                message = f"table {name} can't be renamed: table {new_name} already exists"
                raise AlreadyExistsError(message)
            if self.views.exists(new_name):
                raise _is_view(new_name)
            self._life.rename(old, new)
        with outcome(committed=True):
            table = self.load_table(new_name)
            # The view names all files by their paths.
            table.context.refresh_view()
            return table

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the names of all tables, or of one database's, sorted."""
        return sorted(str(name) for name in self._entries.names(database))

    def table_exists(self, name: str) -> bool:
        """Return whether a table exists. Its schema is not read, so a damaged table counts as existing."""
        place = self._entries.place(TableName.parse_plain(name))
        return place is not None and self._schemas(place).latest_id() is not None

    @reports_outcome
    def create_database(
        self, database: str, properties: Mapping[str, str] | None = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a database; ``AlreadyExistsError`` if it exists, unless ``if_not_exists``.

        ``create_table`` also creates the database of its table.
        """
        name = database_name(database)
        # A directory counts as a database even if its properties could not be written.
        with outcome(committed=None):
            is_made = self._entries.create_database(name, properties or {})
        if not is_made and not if_not_exists:
            message = f"database {database} already exists; create it with if_not_exists=True"
            raise AlreadyExistsError(message)

    @reports_outcome
    def alter_database(self, database: str, updates: Mapping[str, str], *, remove: Collection[str] = ()) -> None:
        """Set properties of a database, and remove others; its location stays.

        Raises ``NotFoundError`` if the database does not exist.
        """
        name = database_name(database)
        if LOCATION in updates or LOCATION in remove:
            message = f"the {LOCATION} of database {database} can't be changed: its tables lie there"
            raise InvalidInputError(message)
        with outcome(committed=None):
            is_changed = self._entries.change_database(name, dict(updates), remove)
        if not is_changed:
            message = (
                f"database {database} does not exist; existing databases: {', '.join(self.list_databases()) or 'none'}"
            )
            raise NotFoundError(message)

    @reports_outcome
    def drop_database(self, database: str, *, if_exists: bool = False, cascade: bool = False) -> None:
        """Drop a database; ``InvalidInputError`` if it has tables or views, unless ``cascade`` drops them as well.

        If a drop was interrupted, repeat the call to complete it.
        """
        if not self.database_exists(database_name(database)):
            if if_exists:
                return
            message = (
                f"database {database} does not exist; existing databases: {', '.join(self.list_databases()) or 'none'}"
            )
            raise NotFoundError(message)
        tables, views = self.list_tables(database), self.views.names(database)
        if (tables or views) and not cascade:
            found = [f"{kind}: {', '.join(names)}" for kind, names in (("tables", tables), ("views", views)) if names]
            message = (
                f"database {database} still contains {' and '.join(found)}; drop them first, or drop it with "
                "cascade=True"
            )
            raise InvalidInputError(message)
        with outcome(committed=None) if tables or views else nullcontext():
            for view in views:
                self.views.drop(view, if_exists=True)
            for name in map(TableName.parse_plain, tables):
                with self._entries.lock(name):
                    self._life.drop(name)
            self.orphans.finish_drops(database)
            self.views.forget(database)
            self._entries.drop_database(database)

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return self._entries.databases()

    def database_exists(self, database: str) -> bool:
        """Return whether a database exists."""
        return self._entries.database_properties(database_name(database)) is not None

    def database_properties(self, database: str) -> dict[str, str]:
        """Return the properties of a database; ``NotFoundError`` if it does not exist."""
        found = self._entries.database_properties(database_name(database))
        if found is None:
            message = (
                f"database {database} does not exist; existing databases: {', '.join(self.list_databases()) or 'none'}"
            )
            raise NotFoundError(message)
        return found

    @property
    def orphans(self) -> CatalogOrphans:
        """Cleanup of files and entries that interrupted CREATE and DROP statements left."""
        return CatalogOrphans(self._environment, self._entries, self._life, self.warehouse)

    def orphan_topics(self) -> OrphanTopics:
        """Topics on this catalog's brokers that no table uses; ``InvalidInputError`` if no brokers are configured."""
        return kafka_orphan_topics(self.options, self._environment.clock, self.orphans.schemas)

    def _new_schema(self, name: TableName, descriptor: TableDescriptor) -> TableSchema:
        """Return the first schema of a new table. Raises ``InvalidInputError`` for an invalid declaration."""
        has_primary_key = bool(descriptor.primary_key)
        options = frozen_options(name, descriptor.options, self.options, has_primary_key=has_primary_key)
        schema = new_table_schema(
            descriptor.schema,
            primary_keys=descriptor.primary_key,
            partition_keys=descriptor.partition_by,
            options={**options, UUID_OPTION: self._environment.new_name()},
            time_millis=self._environment.clock.now_millis(),
            comment=descriptor.comment,
            column_comments=descriptor.column_comments,
        )
        schema = with_declared_defaults(schema, {})
        refuse_unsupported(str(name), schema)
        refuse_view(str(name), schema, location=self._entries.home(name))
        refuse_declared_metadata(schema)
        refuse_log(str(name), TableOptions.parse(schema.options), has_primary_key=bool(schema.primary_keys))
        return schema

    def _schemas(self, location: str) -> SchemaHistory:
        return SchemaHistory(self._environment.file_io, TablePaths(location))

    def _table(self, name: TableName, location: str, schema: TableSchema) -> DynamicTable:
        options = self._options(name, location, schema)
        # Tables that other writers created have no uuid of ours; their directory identifies them instead.
        uuid = schema.options.get(UUID_OPTION, location)
        return DynamicTable(
            name=str(name),
            uuid=uuid,
            location=location,
            address=self._address(name),
            environment=self._with_stores(self._environment_of(name)),
            schema=schema,
            options=options,
            log=self._log(name, schema, options, uuid),
            under=lambda other: self._table(name, location, other),
            on_altered=lambda altered: self._report_entry(name, altered),
        )

    def _options(self, name: TableName, location: str, schema: TableSchema) -> TableOptions:
        try:
            return effective_options(table=schema.options, connection=self.options)
        except InvalidInputError as error:
            try:
                TableOptions.parse(schema.options)
            except InvalidInputError:
                path = TablePaths(location).schema_path(schema.id)
                message = (
                    f"table {name}: the options in {path} are invalid: {error}. If the file is damaged, restore it"
                )
            else:
                message = f"table {name} with the options of the connection: {error}"
            raise InvalidInputError(message) from error

    def _report_entry(self, name: TableName, schema: TableSchema) -> None:
        """Update the table's entry. The table is already altered, so an outage does not fail the ALTER."""
        try:
            self._entries.update(name, schema)
        except StorageError as error:
            _LOGGER.warning(
                "table %s is altered, but its catalog entry still shows the previous definition: %s", name, error
            )

    def _environment_of(self, name: TableName) -> Environment:  # noqa: ARG002  a table's lock has its name
        return self._environment

    def _with_stores(self, environment: Environment) -> Environment:
        """Return the environment with access to all stores: a manifest may name a file on any of them."""
        return replace(environment, elsewhere=replace(self._stores, home=environment.file_io))

    def _address(self, name: TableName) -> TableAddress | None:
        return TableAddress(warehouse=self.warehouse, name=str(name), options=self.options)

    def _log(self, name: TableName, schema: TableSchema, options: TableOptions, uuid: str) -> LogStore | None:
        if UUID_OPTION not in schema.options or options.effective_log_system is LogSystem.NONE:
            return None
        if options.effective_log_system is LogSystem.KAFKA:
            return open_kafka_log(name, schema, options, uuid, self._environment.clock)
        return open_added_log(name, schema, options, uuid, self._environment.clock)


def _is_view(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"table {name} can't be created: {name} is a view; drop it, or choose another name")


def _descriptor(
    schema: Columns | Mapping[str, TypeLike] | TableDescriptor,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    options: Mapping[str, str] | None,
    comment: str | None,
) -> TableDescriptor:
    if not isinstance(schema, TableDescriptor):
        described = TableDescriptor.for_managed()
        described = described.columns(schema) if isinstance(schema, Mapping) else replace(described, schema=schema)
        return replace(
            described,
            primary_key=tuple(primary_key),
            partition_by=tuple(partition_by),
            options={**described.options, **(options or {})},
            comment=comment,
        )
    if primary_key or partition_by or options or comment:
        message = "give keys, options and comment inside the TableDescriptor, not as further arguments"
        raise InvalidInputError(message)
    return schema


def _warn_of_differences(table: DynamicTable, descriptor: TableDescriptor) -> None:
    """Log the differences, which CREATE ... IF NOT EXISTS does not apply and which may be a mistake."""
    if differences := declared_differences(table, descriptor):
        _LOGGER.warning(
            "table %s exists and differs from its declaration: %s. Nothing was changed; alter the table or "
            "the declaration",
            table.name,
            "; ".join(differences),
        )
