"""Catalog in a database that SQLAlchemy supports: SQLite, PostgreSQL or MySQL. Files are below the warehouse.

Paimon's own JDBC catalog sees the same tables. So does its file-system catalog, because every table is in the
directory that its name determines.
"""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.locks.lock_settings import lock_settings
from storage_lib.catalog.locks.locked_files import with_lock
from storage_lib.catalog.sql.sql_database import SqlDatabase
from storage_lib.catalog.sql.sql_entries import SqlEntries
from storage_lib.catalog.sql.sql_lock import SqlLock, SqlLockFactory
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.schema.options.table_options import canonical_options


class SqlCatalog(Catalog):
    """Tables of the catalog ``catalog-key`` in the database at ``uri``.

    Raises ``InvalidInputError`` for a URL that no storage or driver supports, ``UnavailableError`` if the database
    does not answer.
    """

    def __init__(self, warehouse: str, options: Mapping[str, str], *, environment: Environment | None = None) -> None:
        known = canonical_options(options)
        environment = environment or system_environment(file_io_of(warehouse, known))
        settings = lock_settings(known)
        self.database = SqlDatabase(known)
        lock = SqlLock(self.database, settings, environment.clock)
        entries = SqlEntries(self.database, lock, warehouse_root(warehouse))
        self._lock_factory = SqlLockFactory(options=known, settings=settings)
        locked = with_lock(environment, warehouse_root(warehouse), known, self._lock_factory)
        super().__init__(warehouse, options, environment=locked, entries=entries)

    @property
    def lock_factory(self) -> SqlLockFactory:
        """Creates this catalog's lock in any process."""
        return self._lock_factory
