"""Which tables a catalog knows: all in which one home of catalogs differs from another.

An entry is kept apart from the table's files (a row, a metastore's table), or the files are the entry (a directory
tree). ``TableLife`` orders the steps between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from storage_lib.catalog.locks.catalog_lock import Hold
from storage_lib.catalog.table_name import TableName
from storage_lib.schema.table_schema import TableSchema


class TableEntries(Protocol):
    """Entries of one catalog. Thread-safe. Every method raises ``UnavailableError`` if the home does not answer."""

    are_apart: bool
    """Whether entries are stored apart from the table's files."""

    def lock(self, name: TableName) -> AbstractContextManager[Hold]:
        """Keep others from creating, dropping and renaming that table; they wait."""

    def place(self, name: TableName) -> str | None:
        """The table's directory; None if it has no entry. Where the files are the entry, they may not be there."""

    def home(self, name: TableName) -> str:
        """Where a new table of that name has its directory."""

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:
        """Make the entry, and its database if need be; False if there is one.

        Raises ``CommitOutcomeUnknownError`` if the answer was lost.
        """

    def update(self, name: TableName, schema: TableSchema) -> None:
        """Let the entry say what the table is now, as far as it says so; fine without an entry."""

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Take the entry away if ``is_due()`` at the very moment; fine if it is gone."""

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:
        """Give the entry another name and directory; False if that name is taken. Fine if it was done before."""

    def names(self, database: str | None) -> list[TableName]:
        """All tables, or one database's."""

    def databases(self) -> list[str]:
        """All databases, sorted, also those without tables."""

    def create_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Make a database; False if there is one."""

    def database_properties(self, database: str) -> dict[str, str] | None:
        """The properties of a database; None if it does not exist."""

    def drop_database(self, database: str) -> None:
        """Take an empty database away; fine if it is gone."""
