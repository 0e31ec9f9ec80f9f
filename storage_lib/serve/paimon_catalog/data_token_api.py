"""Tokens for data in Paimon's REST catalog: temporary credentials of the store, which read a table.

They only read: a client that puts manifests into a table decides which files its readers open, this server and
processes with other rights among them.
"""

from __future__ import annotations

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from storage_lib.catalog.table_name import TableName
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.paimon_catalog.served_tables import TABLE_PATH, loaded_table, of_this_warehouse
from storage_lib.serve.requests.passed_on import passed_on
from storage_lib.serve.requests.served import Client, Served, ServedParts, client_of
from storage_lib.serve.vending.store_credentials import StoreCredentials

_PASSED_ON = {
    "s3.endpoint": ("s3.endpoint", "fs.s3.endpoint"),
    "s3.region": ("s3.region", "fs.s3.region"),
    "s3.path-style-access": ("s3.path.style.access",),
}
"""Options of the warehouse's store, and their names in Paimon for Java and in pypaimon."""

router = APIRouter(dependencies=[Depends(client_of), Depends(of_this_warehouse)])


@router.get(f"{TABLE_PATH}/token", summary="Temporary credentials for a table's files")
def load_token(served: ServedParts, client: Client, database: str, table: str) -> JSONResponse:
    """Return credentials that read a table."""
    if served.vending is None:
        message = "this server makes no credentials: use your own for the store, with data-token.enabled=false"
        raise RefusedRequestError(Refusal.NOT_IMPLEMENTED, message)
    location = loaded_table(served, client, database, table).location
    found = served.vending.credentials(client.name, TableName.parse(f"{database}.{table}"), location)
    body = {"token": _as_options(served, found), "expiresAtMillis": found.expires_millis}
    return JSONResponse(body, headers={"Cache-Control": "private, no-store"})


def _as_options(served: Served, found: StoreCredentials) -> dict[str, str]:
    return {
        **passed_on(served.catalog.options, _PASSED_ON),
        "s3.access-key": found.access_key,
        "s3.secret-key": found.secret_key,
        "s3.session.token": found.session_token,
        "fs.s3.accessKeyId": found.access_key,
        "fs.s3.accessKeySecret": found.secret_key,
        "fs.s3.securityToken": found.session_token,
    }
