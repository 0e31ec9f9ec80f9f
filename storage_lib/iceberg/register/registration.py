"""What an entry in a catalog of others follows, and how it is kept up to date."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class PublishedView:
    """The view's newest metadata: its snapshot, the absolute path of its file, its bytes, and the table's schema."""

    snapshot_id: int
    path: str
    data: bytes
    schema: TableSchema


@dataclass(frozen=True, slots=True)
class EntryName:
    """Database and name of a table's entry in a catalog of others."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class Registration(Protocol):
    """The entry of one table. Thread-safe; connects when it is first used."""

    def follow(self, newest: Callable[[], PublishedView | None], write_copy: Callable[[bytes], str]) -> None:
        """Bring the entry up to date.

        ``newest`` reads the view's newest metadata; ``write_copy`` stores metadata for a catalog that writes its own,
        and returns its path. Raises ``UnavailableError`` if the catalog does not answer, ``InvalidInputError`` if it
        refuses, or has another table of this name.
        """

    def drop(self) -> None:
        """Remove the entry, if it is this table's. Raises as ``follow``."""


def name_taken(table: str, subject: str, entry: EntryName, location: str, advice: str) -> str:
    """Return the message for an entry of this name that is not the table's, but of one at ``location``."""
    return (
        f"table {table}: {subject} has another table {entry}, at {location}; drop or rename that one, choose another "
        f"name by metadata.iceberg.database and metadata.iceberg.table{advice}"
    )
