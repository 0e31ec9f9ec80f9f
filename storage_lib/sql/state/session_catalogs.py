"""Catalogs that a session opens by CREATE CATALOG: other warehouses, and tables of other formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.io.file_io_factory import STORE_OPTION_PREFIXES
from storage_lib.lakes.lake_kinds import DELTA, ICEBERG, OPTIONS_OF_REST, URI
from storage_lib.schema.options.nearest import did_you_mean

if TYPE_CHECKING:
    from storage_lib.catalog.catalog import Catalog
    from storage_lib.lakes.lake_version import LakeCatalog

TYPE = "type"
WAREHOUSE = "warehouse"
PAIMON = "paimon"
_TYPES = (DELTA, ICEBERG, PAIMON)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCatalog:
    """A catalog by its name in this session, of which exactly one of ``paimon`` and ``lake`` is set.

    ``kind`` is the option ``type``; ``warehouse`` is where the tables are, or the address of a catalog of them.
    """

    name: str
    kind: str
    warehouse: str
    paimon: Catalog | None = None
    lake: LakeCatalog | None = None

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
    if warehouse is None and uri is None:
        message = f"catalog {name} has no option 'warehouse', the directory or URL that holds its databases"
        message += f", or '{URI}', the address of a REST catalog" if kind == ICEBERG else ""
        raise InvalidInputError(message)
    place = str(warehouse if uri is None else uri)
    if kind == PAIMON:
        return SessionCatalog(name=name, kind=kind, warehouse=place, paimon=open_catalog(place, rest))
    _refuse_unknown(name, kind, rest, () if uri is None else OPTIONS_OF_REST)
    return SessionCatalog(name=name, kind=kind, warehouse=place, lake=_lake_of(name, kind, warehouse, rest))


def _refuse_unknown(name: str, kind: str, options: Mapping[str, str], more: Sequence[str]) -> None:
    for key in options:
        if key not in more and not key.startswith(STORE_OPTION_PREFIXES):
            known = ", ".join(map(repr, (TYPE, WAREHOUSE, *(more or ((URI,) if kind == ICEBERG else ())))))
            message = (
                f"catalog {name} of type {kind} has no option {key!r}; it has {known}, and options of the store, which "
                f"begin with {', '.join(STORE_OPTION_PREFIXES)}"
            )
            raise InvalidInputError(message)


def _lake_of(name: str, kind: str, warehouse: str | None, options: Mapping[str, str]) -> LakeCatalog:
    """Open the catalog of a format whose package may be missing."""
    if kind == DELTA:
        from storage_lib.lakes.delta_catalog import DeltaCatalog

        return DeltaCatalog(name, str(warehouse), options)
    from storage_lib.lakes.iceberg_catalog import IcebergDirectories, IcebergRest

    return (
        IcebergRest(name, options, warehouse) if URI in options else IcebergDirectories(name, str(warehouse), options)
    )
