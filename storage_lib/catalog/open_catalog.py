"""Open the catalog of a connection; option ``metastore`` chooses its kind, as in Paimon.

Packages can add catalogs (``storage_lib.schema.options.extensions``): their entry point is called with warehouse and
options.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.warehouse.memory_catalog import MemoryCatalog
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.distribution import import_problem
from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.catalog_options import METASTORE, METASTORE_ALIASES, Metastore
from storage_lib.schema.options.extensions import Extension, added, added_names
from storage_lib.schema.options.table_options import canonical_options
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.table.protocol.table_address import TableAddress


def open_catalog(warehouse: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Catalog:
    """Open the catalog of a warehouse, a directory or a URL.

    The option ``metastore`` chooses where the names of tables are stored: ``filesystem`` (default: in the warehouse's
    directories), ``sql`` (or ``jdbc``; a database at ``uri``), ``hive`` (a metastore at ``uri``), ``memory``, or the
    name of a catalog from a package. Other ``options`` are defaults for new tables and settings of the connection; see
    ``Catalog``. Raises ``InvalidInputError`` for an unknown catalog, or if its client is not installed or does not fit.
    """
    kind = str(canonical_options(options).get(METASTORE, Metastore.FILESYSTEM)).strip().lower()
    chosen = METASTORE_ALIASES.get(kind, kind)
    try:
        return _maker(str(chosen))(os.fspath(warehouse), options or {})
    except ImportError as error:
        raise InvalidInputError(import_problem(f"metastore={kind}", error)) from error


def load_table_at(address: TableAddress) -> DynamicTable:
    """Load the table at an address, in any process."""
    return open_catalog(address.warehouse, address.options).load_table(address.name)


def _maker(metastore: str) -> Callable[[str, Mapping[str, str]], Catalog]:
    """Return the constructor of a kind of catalog. Raises ``InvalidInputError`` for an unknown one."""
    if metastore == Metastore.FILESYSTEM:
        return WarehouseCatalog
    if metastore == Metastore.MEMORY:
        return lambda _, options: MemoryCatalog(options)
    if metastore == Metastore.SQL:
        from storage_lib.catalog.sql.sql_catalog import SqlCatalog

        return SqlCatalog
    if metastore == Metastore.HIVE:
        from storage_lib.catalog.hive.hive_catalog import HiveCatalog

        return HiveCatalog
    others = added_names(Extension.CATALOGS)
    if metastore in others:
        made: Callable[[str, Mapping[str, str]], Catalog] = added(Extension.CATALOGS, metastore)
        return made
    known = ", ".join(sorted({*map(str, Metastore), *METASTORE_ALIASES, *others}))
    message = f"option metastore is {metastore!r}; it has to be one of {known}"
    raise InvalidInputError(message)
