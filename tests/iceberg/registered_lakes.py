"""Warehouses whose tables are registered in a catalog that somebody else runs, and that catalog's clients.

The REST catalog is that of Iceberg's own tests, the metastore Hive's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from storage_lib import DynamicTable, open_catalog
from storage_lib.catalog.catalog import Catalog
from tests.support.faulty_tcp import FaultyTcp

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as OtherCatalog
    from pyiceberg.table import Table

COLUMNS = {"id": "BIGINT", "n": "INT"}
OPTION = "metadata.iceberg.storage"
REST, HIVE = "rest-catalog", "hive-catalog"


@dataclass(frozen=True)
class Lake:
    """A warehouse whose tables are registered in a server of a kind, under a database of the test's own."""

    warehouse: Path
    kind: str
    uri: str
    database: str

    @property
    def catalog(self) -> Catalog:
        key = "iceberg.rest.uri" if self.kind == REST else "iceberg.hive.uri"
        return open_catalog(self.warehouse, {key: self.uri})

    @property
    def options(self) -> dict[str, str]:
        return {OPTION: self.kind, "log.system": "none"}

    @property
    def name(self) -> str:
        return f"{self.database}.t"

    @property
    def others(self) -> OtherCatalog:
        """The catalog as other programs use it."""
        from pyiceberg.catalog.hive import HiveCatalog
        from pyiceberg.catalog.rest import RestCatalog

        return (RestCatalog if self.kind == REST else HiveCatalog)("reader", uri=self.uri)

    def created(self) -> DynamicTable:
        table = self.catalog.create_table(self.name, COLUMNS, primary_key=["id"], options=self.options)
        table.append([{"id": 1, "n": 1}, {"id": 2, "n": 2}])
        return table

    def entry(self) -> Table:
        return self.others.load_table(self.name)

    def shown(self) -> list[dict[str, object]]:
        """Return the rows that a client of the catalog reads."""
        return sorted(self.entry().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def lake_in(directory: Path, kind: str, request: pytest.FixtureRequest) -> Lake:
    server = request.getfixturevalue("iceberg_rest" if kind == REST else "metastore")
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    return Lake(directory / "lake", kind, server.uri, name.lower())


@contextmanager
def behind(lake: Lake) -> Iterator[tuple[Lake, FaultyTcp]]:
    """Put a faulty network before the catalog of others; PyIceberg's clients of the lake use it as well."""
    address = urlsplit(lake.uri)
    assert address.port is not None
    with FaultyTcp(address.port) as network:
        yield replace(lake, uri=f"{address.scheme}://127.0.0.1:{network.port}{address.path}"), network
