"""Interface to a catalog's entries: everything in which kinds of catalogs differ.

An entry is stored apart from the table's files (a database row, a metastore's table), or the files are the entry (a
directory tree). ``TableLife`` orders the steps between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from storage_lib.catalog.locks.catalog_lock import Hold
from storage_lib.catalog.table_name import TableName
from storage_lib.schema.table_schema import TableSchema


class TableEntries(Protocol):
    """Entries of one catalog. Thread-safe. Every method raises ``UnavailableError`` if their store does not answer."""

    are_apart: bool
    """Whether entries are stored apart from the table's files."""

    def lock(self, name: TableName) -> AbstractContextManager[Hold]:
        """Lock a table's name; creating, dropping and renaming it wait for the lock."""

    def place(self, name: TableName) -> str | None:
        """Return the table's directory, or None without an entry. If files are the entry, they may be missing."""

    def home(self, name: TableName) -> str:
        """Return the directory of a new table of that name."""

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:
        """Create the entry, and its database if it is missing; False if the entry exists.

        Raises ``CommitOutcomeUnknownError`` if the answer was lost.
        """

    def update(self, name: TableName, schema: TableSchema) -> None:
        """Update the table's definition in its entry, if entries hold it. Does nothing without an entry."""

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Delete the entry if ``is_due()`` holds at that moment. Does nothing without an entry."""

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:
        """Change the entry's name and directory; False if the new name is taken. Idempotent."""

    def names(self, database: str | None) -> list[TableName]:
        """Return the names of all tables, or of one database's."""

    def databases(self) -> list[str]:
        """Return all databases, sorted, including those without tables."""

    def create_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create a database; False if it exists."""

    def database_properties(self, database: str) -> dict[str, str] | None:
        """Return the properties of a database; None if it does not exist."""

    def change_database(self, database: str, updates: Mapping[str, str], removals: Collection[str]) -> bool:
        """Set some properties of a database and remove others; False if it does not exist."""

    def drop_database(self, database: str) -> None:
        """Delete an empty database. Idempotent."""
