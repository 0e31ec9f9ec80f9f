"""A client of the server: the databases that it may read, and those that it may change."""

from __future__ import annotations

from dataclasses import dataclass

from storage_lib.serve.access.refusal import Refusal, RefusedRequestError

EVERY = "*"
"""In a list of databases: all of them, also later ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedClient:
    """A client that has proved who it is. It may read what it may write; all other databases are closed to it."""

    name: str
    read: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()

    def may_read(self, database: str) -> bool:
        """Return whether the client may see a database and read its tables."""
        return not (self.read | self.write).isdisjoint((database, EVERY))

    def may_write(self, database: str) -> bool:
        """Return whether the client may change a database and its tables."""
        return not self.write.isdisjoint((database, EVERY))

    def require_read(self, database: str) -> None:
        """Raise ``RefusedRequestError`` if the client may not read a database, whether it exists or not."""
        if not self.may_read(database):
            message = f"client {self.name} may not read this database; the server's file of clients has to name it"
            raise RefusedRequestError(Refusal.FORBIDDEN, message, resource=database)

    def require_write(self, database: str) -> None:
        """Raise ``RefusedRequestError`` if the client may not change a database, whether it exists or not."""
        if not self.may_write(database):
            message = (
                f"client {self.name} may not change this database; the server's file of clients has to name it under "
                "write"
            )
            raise RefusedRequestError(Refusal.FORBIDDEN, message, resource=database)
