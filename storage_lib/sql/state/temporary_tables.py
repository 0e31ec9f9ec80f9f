"""Temporary tables: tables like any other in a directory of the session's own, gone with it.

Not in memory, as Spark's Python workers are other processes. A cluster needs a directory that all machines reach.
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
    """The temporary tables of one session; their directory is made with the first. ``close`` deletes them."""

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory
        self._own_directory: str | None = None
        self._catalog: Catalog | None = None
        self._names: dict[str, str] = {}

    def catalog(self) -> Catalog:
        """Where they are."""
        if self._catalog is None:
            if self._directory is None:
                self._own_directory = tempfile.mkdtemp(prefix="dynamic-tables-")
            self._catalog = WarehouseCatalog(self._directory or self._own_directory or "", {"log.system": "none"})
        return self._catalog

    def names(self) -> list[str]:
        """Their names, sorted."""
        return sorted(self._names.values())

    def full_name(self, parts: Sequence[str]) -> str:
        """The name in ``catalog()`` of a table to be made; ``InvalidInputError`` for one with a database."""
        if len(parts) != 1:
            message = f"temporary table {'.'.join(parts)}: temporary tables have no database; name it {parts[-1]}"
            raise InvalidInputError(message)
        return f"{_DATABASE}.{parts[0]}"

    def add(self, name: str) -> None:
        """Remember a table that was made."""
        self._names[name.lower()] = name

    def home_of(self, name: str) -> tuple[Catalog, str] | None:
        """The catalog and full name of a temporary table, ``$`` and what follows included; None if there is none."""
        plain, dollar, rest = name.partition("$")
        known = self._names.get(plain.lower())
        return None if known is None else (self.catalog(), f"{_DATABASE}.{known}{dollar}{rest}")

    def drop(self, name: str, *, if_exists: bool) -> bool:
        """Drop one; False if there is none of that name."""
        known = self._names.pop(name.lower(), None)
        if known is None:
            if if_exists:
                return False
            message = f"temporary table {name} does not exist{did_you_mean(name, self.names())}"
            raise InvalidInputError(message)
        self.catalog().drop_table(f"{_DATABASE}.{known}")
        return True

    def close(self) -> None:
        """Delete them all."""
        for name in self.names():
            self.catalog().drop_table(f"{_DATABASE}.{name}", if_exists=True)
        self._names.clear()
        if self._own_directory is not None:
            shutil.rmtree(self._own_directory, ignore_errors=True)
        self._catalog = self._own_directory = None
