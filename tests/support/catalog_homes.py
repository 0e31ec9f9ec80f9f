"""Every kind of catalog store by name, for suites that all of them must pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from storage_lib import Catalog, MemoryCatalog
from storage_lib.catalog.open_catalog import open_catalog
from storage_lib.io.environment import Environment, new_uuid, system_environment
from storage_lib.io.file_io import FileIO
from storage_lib.io.local.local_file_io import LocalFileIO
from storage_lib.io.local.memory_file_io import MemoryFileIO
from tests.support.extras import needed

SHARED = (
    "warehouse",
    "sqlite",
    pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.integration]),
    pytest.param("hive", marks=[pytest.mark.metastore, pytest.mark.integration]),
)
"""Kinds that several processes can share."""
ALL = ("memory", *SHARED)
APART = SHARED[1:]
"""Kinds that store entries separately from the table files."""

DATABASE = "shop"


@dataclass(kw_only=True)
class CatalogHome:
    """Location of one catalog, initially empty; each ``open`` behaves like a separate process."""

    name: str
    warehouse: str
    options: Mapping[str, str] = field(default_factory=dict)
    database: str = DATABASE
    """Database for the tests; the metastore and its databases are shared by all tests of a session."""
    files: FileIO = field(default_factory=lambda: LocalFileIO(durable=False))
    log_prefix: str = field(default_factory=lambda: f"home-{new_uuid()}")

    def open(self, more: Mapping[str, str] | None = None) -> Catalog:
        """Open the catalog with the additional options ``more``."""
        environment = system_environment(self.files)
        said = {"log.system": "none", **self.options, **(more or {})}
        if self.name == "memory":
            catalog = MemoryCatalog(said, environment=environment)
            catalog.log_prefix = self.log_prefix
            return catalog
        return _opened(self.warehouse, said, environment)


def catalog_home(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> CatalogHome:
    """Return an empty location of that kind."""
    warehouse = str(tmp_path / "warehouse")
    if name == "memory":
        return CatalogHome(name=name, warehouse=warehouse, files=MemoryFileIO())
    unique = f"t{new_uuid().replace('-', '')[:12]}"
    if name == "sqlite":
        needed("sqlalchemy")
        return CatalogHome(
            name=name,
            warehouse=warehouse,
            options={"metastore": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "lock-check-max-sleep": "20 ms"},
        )
    if name == "postgres":
        uri = request.getfixturevalue("postgres").uri
        return CatalogHome(
            name=name,
            warehouse=warehouse,
            options={"metastore": "sql", "uri": uri, "catalog-key": unique, "lock-check-max-sleep": "20 ms"},
        )
    if name == "hive":
        uri = request.getfixturevalue("metastore").uri
        return CatalogHome(
            name=name,
            warehouse=warehouse,
            options={"metastore": "hive", "uri": uri, "lock-check-max-sleep": "20 ms"},
            database=unique,
        )
    return CatalogHome(name=name, warehouse=warehouse)


def _opened(warehouse: str, options: Mapping[str, str], environment: Environment) -> Catalog:
    catalog = open_catalog(warehouse, options)
    catalog._environment = environment
    catalog._life._file_io = environment.file_io
    if catalog._entries.__class__.__name__ == "DirectoryEntries":
        catalog._entries._file_io = environment.file_io  # type: ignore[attr-defined]
    return catalog
