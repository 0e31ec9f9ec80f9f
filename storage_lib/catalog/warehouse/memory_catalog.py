"""Catalog in this process's memory, for tests, examples and temporary tables."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from storage_lib.catalog.table_name import TableName
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from storage_lib.log_store.log_store import LogStore
from storage_lib.log_store.memory.memory_log_store import MemoryLogStore
from storage_lib.schema.options.table_options import UUID_OPTION, LogSystem, TableOptions
from storage_lib.schema.table_schema import TableSchema
from storage_lib.table.protocol.table_address import TableAddress


class MemoryCatalog(WarehouseCatalog):
    """Warehouse catalog over ``MemoryFileIO`` and ``MemoryLogStore``.

    ``log.system=kafka``, the default here, selects ``MemoryLogStore``.
    """

    def __init__(self, options: Mapping[str, str] | None = None, *, environment: Environment | None = None) -> None:
        super().__init__(
            "/memory",
            {"log.system": "kafka", **(options or {})},
            environment=system_environment(MemoryFileIO()) if environment is None else environment,
        )
        self.log_prefix = _log_prefix(self._environment.file_io)

    def _with_stores(self, environment: Environment) -> Environment:
        """Return the environment unchanged: memory replaces every store."""
        return environment

    def _address(self, name: TableName) -> TableAddress | None:  # noqa: ARG002  as the catalog it stands in for
        return None

    def _log(self, name: TableName, schema: TableSchema, options: TableOptions, uuid: str) -> LogStore | None:
        if UUID_OPTION not in schema.options or options.effective_log_system is LogSystem.NONE:
            return None
        return MemoryLogStore(
            schema,
            f"{self.log_prefix}/{options.log_kafka_topic or name}",
            uuid,
            self._environment.clock,
            changelog_mode=options.effective_changelog_mode(has_primary_key=bool(schema.primary_keys)),
            retention_ms=options.log_retention_ms,
            transaction_timeout_ms=options.log_transaction_timeout_ms,
        )


_NUMBERS = itertools.count(1)
_PREFIXES: WeakKeyDictionary[FileIO, str] = WeakKeyDictionary()


def _log_prefix(file_io: FileIO) -> str:
    """Return the prefix of log names: the same for catalogs over the same files. Not ``id()``, which may be reused."""
    return _PREFIXES.setdefault(file_io, f"memory-{next(_NUMBERS)}")
