"""Default catalog: a directory tree, ``<warehouse>/<database>.db/<table>``, without any server.

A table exists as soon as its ``schema/schema-0`` does: CREATE consists of creating that file atomically.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.locks.locked_files import with_lock
from storage_lib.catalog.warehouse.directory_entries import DirectoryEntries
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.schema.options.table_options import canonical_options


class WarehouseCatalog(Catalog):
    """Tables below one directory, on this machine or at a URL (``s3://bucket/path``, ``hdfs://namenode:port/path``).

    Raises ``InvalidInputError`` for a URL that no storage supports, or a store without create-if-absent.
    """

    def __init__(
        self,
        warehouse: str,
        options: Mapping[str, str] | None = None,
        *,
        environment: Environment | None = None,
    ) -> None:
        root = warehouse_root(warehouse)
        environment = environment or system_environment(file_io_of(warehouse, canonical_options(options)))
        environment = with_lock(environment, root, canonical_options(options), None)
        super().__init__(
            warehouse, options, environment=environment, entries=DirectoryEntries(environment.file_io, root)
        )
