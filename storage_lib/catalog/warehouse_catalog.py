"""The default catalog: a directory tree, ``<warehouse>/<database>.db/<table>``, nothing else to run.

A table is there as soon as its ``schema/schema-0`` is: creating that file is what CREATE comes down to.

    create   schema-0 (or somebody else has it) ─▶ topic; if the topic can't be made, schema-0 is taken back
    drop     dropped (says what to delete) ─▶ schema ─▶ topic ─▶ files; whoever comes next finishes a drop

This is the one place that turns options into stores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from storage_lib.catalog.kind_options import with_kind_options
from storage_lib.catalog.log_refusals import refuse_log
from storage_lib.catalog.table_descriptor import TableDescriptor
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES, file_io_of, warehouse_root
from storage_lib.io.table_paths import TablePaths
from storage_lib.log_store.log_store import LogStore
from storage_lib.schema.schema_changes import SchemaChange, TypeLike, type_of
from storage_lib.schema.schema_history import SchemaHistory
from storage_lib.schema.table_options import (
    KAFKA_PREFIX,
    REGISTRY_PREFIX,
    UUID_OPTION,
    LogSystem,
    TableOptions,
    canonical_key,
    is_secret,
)
from storage_lib.schema.table_schema import TableSchema, new_table_schema
from storage_lib.schema.unsupported import refuse_unsupported
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.table_address import TableAddress

_TOPIC_OPTION = "log.kafka.topic"
_PINNED = {
    "snapshot.num-retained.min": "2147483647",
    "snapshot.num-retained.max": "2147483647",
    "partition.legacy-name": "false",
}
"""So that no other engine's commit expires our snapshots, and a DATE partition is named as in Hive."""


class WarehouseCatalog:
    """Tables below one directory, on this machine or at a URL (``s3://bucket/path``, ``hdfs://namenode:port/path``).

    ``options`` are defaults for new tables, and what a connection knows: servers and credentials. The former are
    frozen into a table when it is created; the latter are looked up here each time and stored nowhere.
    Raises ``InvalidInputError`` for a URL that no storage answers to.
    """

    def __init__(
        self,
        warehouse: str,
        options: Mapping[str, str] | None = None,
        *,
        environment: Environment | None = None,
    ) -> None:
        self.warehouse = warehouse_root(warehouse)
        self.options = {canonical_key(key): value for key, value in (options or {}).items()}
        self._environment = environment or system_environment(file_io_of(warehouse, self.options))
        TableOptions.parse(self.options)

    def create_table(
        self,
        name: str,
        schema: pa.Schema | Mapping[str, TypeLike] | TableDescriptor,
        *,
        primary_key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> DynamicTable:
        """Make a table and its log. Columns are an Arrow schema, or names with types (``{"name": "VARCHAR(20)"}``).

        With ``if_not_exists`` an existing table is returned, its log made if it lacks one.

        Raises ``InvalidInputError`` for whatever can't be a table, ``AlreadyExistsError`` for a table or a foreign
        topic of that name, ``UnavailableError`` if Kafka can't be reached; then nothing is left behind.
        """
        table_name = TableName.parse_plain(name)
        descriptor = _descriptor(schema, primary_key, partition_by, options, comment)
        self._finish_drop(table_name)
        if self.table_exists(name):
            if not if_not_exists:
                message = f"table {name} exists already; load it, drop it, or create it with if_not_exists=True"
                raise AlreadyExistsError(message)
            table = self.load_table(name)
            _refuse_other_columns(table, descriptor)
            if table.log is not None:
                table.log.create()
            return table
        new_schema = new_table_schema(
            descriptor.schema,
            primary_keys=descriptor.primary_key,
            partition_keys=descriptor.partition_by,
            options=self._frozen_options(table_name, descriptor.options, has_primary_key=bool(descriptor.primary_key)),
            time_millis=self._environment.clock.now_millis(),
            comment=descriptor.comment,
        )
        refuse_unsupported(name, new_schema)
        refuse_log(name, TableOptions.parse(new_schema.options), has_primary_key=bool(new_schema.primary_keys))
        table = self._table(table_name, new_schema)
        if table.file_store.snapshots.latest_id() is not None:
            message = (
                f"table {name} can't be made at {table.location}: there are snapshots of a table that is gone, left by "
                "a writer in the very moment it was dropped. Delete that directory first"
            )
            raise AlreadyExistsError(message)
        if not self._schemas(table_name).append(new_schema):
            message = f"table {name} was created by somebody else just now; load it"
            raise AlreadyExistsError(message)
        try:
            if table.log is not None:
                table.log.create()
        except BaseException:
            with suppress(StorageError):
                self._environment.file_io.delete_tree(self._location(table_name))
            raise
        return table

    def load_table(self, name: str) -> DynamicTable:
        """The table as it is now, or a branch of it (``db.table$branch_dev``); ``NotFoundError`` if there is none."""
        table_name = TableName.parse(name)
        if table_name.system_table is not None:
            message = f"{name} is a system table, which can only be read: use system_table({name!r})"
            raise InvalidInputError(message)
        schema = self._schemas(table_name).latest()
        if schema is None:
            known = ", ".join(self.list_tables()) or "none"
            message = f"there is no table {table_name.plain} in {self.warehouse}; tables there: {known}"
            raise NotFoundError(message)
        table = self._table(table_name.plain, schema)
        return table if table_name.branch is None else table.branch(table_name.branch)

    def system_table(self, name: str) -> pa.Table:
        """A system table, as ``db.table$snapshots`` or ``db.table$branch_dev$files``; see ``DynamicTable``."""
        table_name = TableName.parse(name)
        if table_name.system_table is None:
            message = f"{name} names no system table; write {name}$snapshots or the like"
            raise InvalidInputError(message)
        return self.load_table(str(replace(table_name, system_table=None))).system_table(table_name.system_table)

    def alter_table(self, name: str, changes: Sequence[SchemaChange]) -> DynamicTable:
        """``DynamicTable.alter`` of the table of that name; ``NotFoundError`` if there is none."""
        return self.load_table(name).alter(*changes)

    def drop_table(self, name: str, *, if_exists: bool = False) -> None:
        """Delete a table, its log and its files; ``NotFoundError`` if there is none, unless ``if_exists``.

        Repeatable: a drop that was interrupted, or whose topic could not be deleted, is finished by the next.
        """
        table_name = TableName.parse_plain(name)
        paths = TablePaths(self._location(table_name))
        schema = self._schemas(table_name).latest()
        if schema is not None:
            self._environment.file_io.create_if_absent(paths.dropped_path, schema.to_json())
        elif not self._finish_drop(table_name) and not if_exists:
            message = f"there is no table {name} in {self.warehouse} to drop"
            raise NotFoundError(message)
        self._finish_drop(table_name)

    def list_tables(self, database: str | None = None) -> list[str]:
        """Names of all tables, or of one database's, sorted."""
        file_io = self._environment.file_io
        databases = [
            entry.name.removesuffix(".db")
            for entry in file_io.list_directory(self.warehouse)
            if entry.is_directory and entry.name.endswith(".db")
        ]
        names = [
            f"{each}.{entry.name}"
            for each in databases
            if database is None or each == database
            for entry in file_io.list_directory(f"{self.warehouse}/{each}.db")
            if entry.is_directory
        ]
        return sorted(name for name in names if self._is_listed(name))

    def table_exists(self, name: str) -> bool:
        """Whether there is a table of that name. Its schema is not read, so a damaged one is there, too."""
        return self._schemas(TableName.parse_plain(name)).latest_id() is not None

    def _is_listed(self, name: str) -> bool:
        try:
            return self.table_exists(name)
        except InvalidInputError:  # a directory of somebody else's
            return False

    def _location(self, name: TableName) -> str:
        return f"{self.warehouse}/{name.directory}"

    def _schemas(self, name: TableName) -> SchemaHistory:
        return SchemaHistory(self._environment.file_io, TablePaths(self._location(name)))

    def _frozen_options(self, name: TableName, declared: Mapping[str, str], *, has_primary_key: bool) -> dict[str, str]:
        """What the new table's schema stores: declared before the catalog's, without servers and secrets."""
        given = {canonical_key(key): str(value) for key, value in declared.items()}
        for key in given:
            if is_secret(key):
                message = (
                    f"table {name}: option {key} is a secret; give it to the catalog (the connection), not to the table"
                )
                raise InvalidInputError(message)
            if key.startswith(STORE_OPTION_PREFIXES):
                message = f"table {name}: option {key} is about the storage; give it to the catalog (the connection)"
                raise InvalidInputError(message)
        of_connections = (KAFKA_PREFIX, REGISTRY_PREFIX, *STORE_OPTION_PREFIXES)
        defaults = {
            key: value
            for key, value in self.options.items()
            if not key.startswith(of_connections) and not is_secret(key)
        }
        merged = {**_PINNED, **with_kind_options(str(name), {**defaults, **given}, has_primary_key=has_primary_key)}
        effective = TableOptions.parse({**self.options, **merged})
        merged["log.system"] = str(effective.effective_log_system)
        if effective.effective_log_system is LogSystem.KAFKA:
            merged.setdefault(_TOPIC_OPTION, str(name))
        merged[UUID_OPTION] = self._environment.new_name()
        return merged

    def _table(self, name: TableName, schema: TableSchema) -> DynamicTable:
        options = TableOptions.parse({**self.options, **schema.options})
        # Tables that other writers made have no uuid of ours: their directory has to do.
        uuid = schema.options.get(UUID_OPTION, self._location(name))
        return DynamicTable(
            name=str(name),
            uuid=uuid,
            location=self._location(name),
            address=self._address(name),
            environment=self._environment,
            schema=schema,
            options=options,
            log=self._log(name, schema, options, uuid),
            under=lambda other: self._table(name, other),
        )

    def _address(self, name: TableName) -> TableAddress | None:
        return TableAddress(warehouse=self.warehouse, name=str(name), options=self.options)

    def _log(self, name: TableName, schema: TableSchema, options: TableOptions, uuid: str) -> LogStore | None:
        if UUID_OPTION not in schema.options or options.effective_log_system is LogSystem.NONE:
            return None
        if options.log_kafka_bootstrap_servers is None:
            message = (
                f"table {name} has its log in Kafka, but no bootstrap servers are known; open the catalog with "
                "options={'log.kafka.bootstrap.servers': 'host:port'}"
            )
            raise InvalidInputError(message)
        try:
            from storage_lib.log_store.kafka_log_settings import KafkaLogSettings
            from storage_lib.log_store.kafka_log_store import KafkaLogStore
        except ImportError as error:
            message = (
                f"table {name} has its log in Kafka, which needs an extra: pip install 'dynamic-tables[kafka]' "
                f"({error})"
            )
            raise InvalidInputError(message) from error
        client_options = {**options.log_kafka_client, "bootstrap.servers": options.log_kafka_bootstrap_servers}
        if options.log_kafka_replication_factor > 0:
            client_options["replication.factor"] = str(options.log_kafka_replication_factor)
        settings = KafkaLogSettings(
            topic=options.log_kafka_topic or str(name),
            table_uuid=uuid,
            client_options=client_options,
            changelog_mode=options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys)),
            retention_ms=options.log_retention_ms,
            transaction_timeout_ms=options.log_transaction_timeout_ms,
            format=options.log_format,
            key_format=options.log_key_format,
            registry_options=options.log_schema_registry,
        )
        return KafkaLogStore(schema, settings, self._environment.clock)

    def _finish_drop(self, name: TableName) -> bool:
        """Finish a drop that has been decided; False if there is none."""
        file_io = self._environment.file_io
        paths = TablePaths(self._location(name))
        if not file_io.exists(paths.dropped_path):
            return False
        note = file_io.read_bytes(paths.dropped_path)
        schema = TableSchema.from_json(note)
        file_io.delete_tree(paths.schema_directory)
        log = self._table(name, schema).log
        if log is not None:
            log.drop()
            log.close()
        # The note goes last, with the directory: a crash before leaves it to the next.
        for entry in file_io.list_directory(paths.root):
            if not self._is_noted(paths, note):
                return True
            if entry.is_directory:
                file_io.delete_tree(f"{paths.root}/{entry.name}")
        if self._is_noted(paths, note):
            file_io.delete_tree(paths.root)
        return True

    def _is_noted(self, paths: TablePaths, note: bytes) -> bool:
        """Whether the drop is still to be finished: somebody else may have, and made the table anew meanwhile."""
        try:
            return self._environment.file_io.read_bytes(paths.dropped_path) == note
        except NotFoundError:
            return False


def open_catalog(warehouse: str, options: Mapping[str, str] | None = None) -> WarehouseCatalog:
    """The catalog of a warehouse, a directory or a URL; ``options`` as in ``WarehouseCatalog``."""
    return WarehouseCatalog(warehouse, options)


def load_table_at(address: TableAddress) -> DynamicTable:
    """The table at an address, in whatever process this is."""
    return WarehouseCatalog(address.warehouse, address.options).load_table(address.name)


def _descriptor(
    schema: pa.Schema | Mapping[str, TypeLike] | TableDescriptor,
    primary_key: Sequence[str],
    partition_by: Sequence[str],
    options: Mapping[str, str] | None,
    comment: str | None,
) -> TableDescriptor:
    if not isinstance(schema, TableDescriptor):
        is_mapping = isinstance(schema, Mapping)
        return TableDescriptor(
            schema=tuple((name, type_of(like)) for name, like in schema.items()) if is_mapping else schema,
            primary_key=tuple(primary_key),
            partition_by=tuple(partition_by),
            options=options or {},
            comment=comment,
        )
    if primary_key or partition_by or options or comment:
        message = "a TableDescriptor says everything itself; give keys, options and comment to it, not beside it"
        raise InvalidInputError(message)
    return schema


def _refuse_other_columns(table: DynamicTable, descriptor: TableDescriptor) -> None:
    """``if_not_exists`` on a table that is something else would hide a mistake."""
    wanted = new_table_schema(
        descriptor.schema,
        primary_keys=descriptor.primary_key,
        partition_keys=descriptor.partition_by,
        options=table.schema.options,
        time_millis=0,
    )
    for role, is_, should_be in (
        ("columns", [(f.name, f.type) for f in table.schema.fields], [(f.name, f.type) for f in wanted.fields]),
        ("primary key", list(table.schema.primary_keys), list(wanted.primary_keys)),
        ("partition columns", list(table.schema.partition_keys), list(wanted.partition_keys)),
    ):
        if is_ != should_be:
            message = (
                f"table {table.name} exists with other {role}: {json.dumps(is_, default=str)} there, "
                f"{json.dumps(should_be, default=str)} here. Drop it first, or create the new one under another name"
            )
            raise AlreadyExistsError(message)
