"""The databases that a client may see."""

from __future__ import annotations

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.table_name import database_name
from storage_lib.errors import InvalidInputError
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import ServedClient


def shown_databases(catalog: Catalog, client: ServedClient) -> list[str]:
    """Return the databases that a client may read."""
    return [each for each in catalog.list_databases() if _is_valid(each) and client.may_read(each)]


def require_database(catalog: Catalog, client: ServedClient, name: str, *, to_write: bool = False) -> None:
    """Raise ``RefusedRequestError`` unless a database exists that the client may read, or ``to_write``, change."""
    client.require_write(name) if to_write else client.require_read(name)
    if not _is_valid(name) or not catalog.database_exists(name):
        message = "the database does not exist"
        raise RefusedRequestError(Refusal.NO_DATABASE, message, resource=name)


def _is_valid(database: str) -> bool:
    """Return whether a name is one that a database can have: a directory may have another."""
    try:
        database_name(database)
    except InvalidInputError:
        return False
    return True
