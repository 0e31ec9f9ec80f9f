"""Catalog in a Hive metastore. Hive clients see its tables with columns, partition keys, location and options."""

from __future__ import annotations

from collections.abc import Mapping

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.hive.hive_entries import HiveEntries
from storage_lib.catalog.hive.hive_lock import HiveLock, HiveLockFactory
from storage_lib.catalog.locks.lock_settings import lock_settings
from storage_lib.catalog.locks.locked_files import with_lock
from storage_lib.errors import InvalidInputError
from storage_lib.hive.hive_metastore import HiveMetastore
from storage_lib.io.environment import Environment, system_environment
from storage_lib.io.file_io_factory import file_io_of, warehouse_root
from storage_lib.schema.options.catalog_options import LOCATION_IN_PROPERTIES, URI
from storage_lib.schema.options.option_values import parse_boolean
from storage_lib.schema.options.table_options import canonical_options


class HiveCatalog(Catalog):
    """Catalog of the tables in the metastore at option ``uri``.

    Raises ``InvalidInputError`` for a warehouse URL of an unknown scheme and for an invalid ``uri``. The first call
    raises ``UnavailableError`` if the metastore does not answer.
    """

    def __init__(self, warehouse: str, options: Mapping[str, str], *, environment: Environment | None = None) -> None:
        known = canonical_options(options)
        environment = environment or system_environment(file_io_of(warehouse, known))
        settings = lock_settings(known)
        metastore = HiveMetastore(known.get(URI, ""), option=URI)
        lock = HiveLock(metastore, settings, environment.clock)
        try:
            in_properties = parse_boolean(known.get(LOCATION_IN_PROPERTIES, "false"))
        except ValueError as error:
            message = f"option {LOCATION_IN_PROPERTIES} is {known[LOCATION_IN_PROPERTIES]!r}; {error}"
            raise InvalidInputError(message) from error
        entries = HiveEntries(metastore, lock, warehouse_root(warehouse), location_in_properties=in_properties)
        self._lock_factory = HiveLockFactory(options=known, settings=settings)
        locked = with_lock(environment, warehouse_root(warehouse), known, self._lock_factory)
        super().__init__(warehouse, options, environment=locked, entries=entries)

    @property
    def lock_factory(self) -> HiveLockFactory:
        """Creates this catalog's lock in any process."""
        return self._lock_factory
