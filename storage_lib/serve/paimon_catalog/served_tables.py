"""The table that a path of Paimon's REST catalog names."""

from __future__ import annotations

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import ServedClient
from storage_lib.serve.requests.served import Served, ServedParts
from storage_lib.table.dynamic_table import DynamicTable

TABLE_PATH = "/v1/{prefix}/databases/{database}/tables/{table}"


def of_this_warehouse(served: ServedParts, prefix: str = "") -> None:
    """Refuse paths of another warehouse: the config says which prefix they have."""
    if prefix not in ("", served.warehouse):
        message = "this server has no such warehouse"
        raise RefusedRequestError(Refusal.NO_SUCH_PATH, message)


def loaded_table(
    served: Served, client: ServedClient, database: str, table: str, *, to_write: bool = False
) -> DynamicTable:
    """Return a table or a branch. Raises ``RefusedRequestError`` if there is none, or the client may not use it."""
    client.require_write(database) if to_write else client.require_read(database)
    try:
        name = TableName.parse(f"{database}.{table}")
        if name.database != database or name.system_table is not None or name.state is not None:
            raise no_table(table)
        return served.catalog.load_table(str(name))
    except NotFoundError as error:
        raise no_table(table) from error
    except InvalidInputError as error:
        if _exists(served.catalog, f"{database}.{table}"):
            raise
        raise no_table(table) from error


def no_table(table: str) -> RefusedRequestError:
    """Return the refusal for a table that does not exist."""
    return RefusedRequestError(Refusal.NO_TABLE, "the table does not exist", resource=table)


def _exists(catalog: Catalog, name: str) -> bool:
    try:
        return catalog.table_exists(name)
    except InvalidInputError:
        return False
