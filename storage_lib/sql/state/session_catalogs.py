"""Catalogs that a session opens beside its own, by CREATE CATALOG: other warehouses, and tables of Delta Lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.schema.options.nearest import did_you_mean

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.lakes.delta_catalog import DeltaCatalog

TYPE = "type"
WAREHOUSE = "warehouse"
DELTA = "delta"
PAIMON = "paimon"
_TYPES = (DELTA, PAIMON)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCatalog:
    """A catalog by its name in this session, of which exactly one of ``paimon`` and ``delta`` is set."""

    name: str
    warehouse: str
    paimon: Catalog | None = None
    delta: DeltaCatalog | None = None

    @property
    def kind(self) -> str:
        """Return the option ``type``."""
        return DELTA if self.paimon is None else PAIMON

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        if self.delta is not None:
            return self.delta.databases()
        return [] if self.paimon is None else sorted(self.paimon.list_databases())

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted. Raises ``NotFoundError`` if it does not exist."""
        if self.delta is not None:
            return self.delta.tables(database)
        if self.paimon is None or not self.paimon.database_exists(database):
            message = f"database {self.name}.{database} does not exist{did_you_mean(database, self.databases())}"
            raise NotFoundError(message)
        return sorted(name.partition(".")[2] for name in self.paimon.list_tables(database))


def open_session_catalog(name: str, options: Mapping[str, str]) -> SessionCatalog:
    """Open the catalog that ``options`` describe: ``type``, ``warehouse``, and those of its store or connection.

    Raises ``InvalidInputError`` for an unknown type or option, and if a package is missing.
    """
    rest = dict(options)
    kind, warehouse = rest.pop(TYPE, None), rest.pop(WAREHOUSE, None)
    if kind not in _TYPES:
        given = "has no option 'type'" if kind is None else f"is of type {kind!r}"
        message = f"catalog {name} {given}; the types are {' and '.join(_TYPES)}"
        raise InvalidInputError(message)
    if warehouse is None:
        message = f"catalog {name} has no option 'warehouse', the directory or URL that holds its databases"
        raise InvalidInputError(message)
    if kind == PAIMON:
        return SessionCatalog(name=name, warehouse=warehouse, paimon=open_catalog(warehouse, rest))
    for key in rest:
        if not key.startswith(STORE_OPTION_PREFIXES):
            message = (
                f"catalog {name} of type {kind} has no option {key!r}; it has 'type', 'warehouse', and options of the "
                f"store, which begin with {', '.join(STORE_OPTION_PREFIXES)}"
            )
            raise InvalidInputError(message)
    from storage_lib.lakes.delta_catalog import DeltaCatalog

    return SessionCatalog(name=name, warehouse=warehouse, delta=DeltaCatalog(name, warehouse, rest))
