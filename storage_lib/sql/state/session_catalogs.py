"""Catalogs that a session opens by CREATE CATALOG: other warehouses, and tables of other formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.lakes.lake_kinds import ICEBERG, LAKES, TYPE, URI, WAREHOUSE
from storage_lib.lakes.open_lake import open_lake
from storage_lib.schema.options.nearest import did_you_mean

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.lakes.lake_version import LakeCatalog

PAIMON = "paimon"
_TYPES = (*LAKES, PAIMON)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCatalog:
    """A catalog by its name in this session, of which exactly one of ``paimon`` and ``lake`` is set.

    ``kind`` is the option ``type``; ``warehouse`` is where the tables are, or the address of a catalog of them.
    ``options`` are those of a lake, secrets included.
    """

    name: str
    kind: str
    warehouse: str
    paimon: Catalog | None = None
    lake: LakeCatalog | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        if self.lake is not None:
            return self.lake.databases()
        return [] if self.paimon is None else sorted(self.paimon.list_databases())

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables, sorted. Raises ``NotFoundError`` if it does not exist."""
        if self.lake is not None:
            return self.lake.tables(database)
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
        message = f"catalog {name} {given}; the types are {', '.join(_TYPES)}"
        raise InvalidInputError(message)
    uri = rest.get(URI) if kind == ICEBERG else None
    if kind != PAIMON:
        lake = open_lake(name, options)
        return SessionCatalog(
            name=name, kind=kind, warehouse=str(uri or warehouse), lake=lake, options=tuple(options.items())
        )
    if warehouse is None:
        message = f"catalog {name} has no option 'warehouse', the directory or URL that holds its databases"
        raise InvalidInputError(message)
    return SessionCatalog(name=name, kind=kind, warehouse=warehouse, paimon=open_catalog(warehouse, rest))
