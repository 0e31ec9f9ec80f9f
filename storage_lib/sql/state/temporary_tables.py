"""Temporary tables: ordinary tables in a directory of the session, deleted when it is closed.

They are on disk because Spark's Python workers are separate processes. A cluster needs a directory that all machines
can access.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.warehouse.warehouse_catalog import WarehouseCatalog
from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.nearest import did_you_mean

_DATABASE = "temporary"


class TemporaryTables:
    """Temporary tables of one session, in ``directory`` or, if None, a new local one. ``close`` deletes them."""

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._own_directory: str | None = None
        self._catalog: Catalog | None = None
        self._names: dict[str, str] = {}

    def catalog(self) -> Catalog:
        """Return the catalog of the temporary tables; creates the directory at the first call."""
        if self._catalog is None:
            if self._directory is None:
                self._own_directory = tempfile.mkdtemp(prefix="dynamic-tables-")
            self._catalog = WarehouseCatalog(self._directory or self._own_directory or "", {"log.system": "none"})
        return self._catalog

    def names(self) -> list[str]:
        """Return the names of the temporary tables, sorted."""
        return sorted(self._names.values())

    def full_name(self, parts: Sequence[str]) -> str:
        """Return the name in ``catalog()`` for a new table; ``InvalidInputError`` if the name has a database."""
        if len(parts) != 1:
            message = f"temporary table {'.'.join(parts)}: temporary tables have no database; name it {parts[-1]}"
            raise InvalidInputError(message)
        return f"{_DATABASE}.{parts[0]}"

    def add(self, name: str) -> None:
        """Register a table that was created in ``catalog()``."""
        self._names[name.lower()] = name

    def home_of(self, name: str) -> tuple[Catalog, str] | None:
        """Return a temporary table's catalog and full name, including a ``$`` suffix; None if it does not exist."""
        plain, dollar, rest = name.partition("$")
        known = self._names.get(plain.lower())
        return None if known is None else (self.catalog(), f"{_DATABASE}.{known}{dollar}{rest}")

    def drop(self, name: str, *, if_exists: bool) -> bool:
        """Drop a table; return False if it does not exist, or without ``if_exists`` raise ``InvalidInputError``."""
        known = self._names.pop(name.lower(), None)
        if known is None:
            if if_exists:
                return False
            message = f"temporary table {name} does not exist{did_you_mean(name, self.names())}"
            raise InvalidInputError(message)
        self.catalog().drop_table(f"{_DATABASE}.{known}")
        return True

    def close(self) -> None:
        """Drop all temporary tables, and delete the directory if it was created here."""
        for name in self.names():
            self.catalog().drop_table(f"{_DATABASE}.{name}", if_exists=True)
        self._names.clear()
        if self._own_directory is not None:
            shutil.rmtree(self._own_directory, ignore_errors=True)
        self._catalog = self._own_directory = None
