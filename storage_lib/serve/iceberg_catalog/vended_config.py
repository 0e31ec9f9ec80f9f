"""Temporary credentials as Iceberg's REST catalog hands them out: a client asks for them by a header.

Its clients (S3FileIO, PyIceberg) know the properties by these names.
"""

from __future__ import annotations

from typing import Any

from storage_lib.catalog.table_name import TableName
from storage_lib.io.file_io_factory import absolute_place
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import ServedClient
from storage_lib.serve.requests.served import Served
from storage_lib.serve.vending.store_credentials import StoreCredentials

DELEGATION = "X-Iceberg-Access-Delegation"
"""The header by which a client asks. Its values are separated by commas, and it may be sent several times."""
_VENDED = "vended-credentials"


def wants_credentials(delegation: list[str] | None) -> bool:
    """Return whether the headers name the form of access that this server has."""
    return _VENDED in [each.strip().lower() for each in ",".join(delegation or []).split(",")]


def credentials_of(served: Served, client: ServedClient, name: TableName, location: str) -> StoreCredentials:
    """Return credentials that read a table in ``location``.

    Raises ``RefusedRequestError`` if the server makes none, and as ``Vending.credentials``.
    """
    if served.vending is None:
        message = "this server makes no credentials: use your own for the store"
        raise RefusedRequestError(Refusal.NO_SUCH_PATH, message)
    return served.vending.credentials(client.name, name, location)


def as_config(found: StoreCredentials, name: TableName) -> dict[str, str]:
    """Return the properties of a client's connection to the store."""
    return {
        "s3.access-key-id": found.access_key,
        "s3.secret-access-key": found.secret_key,
        "s3.session-token": found.session_token,
        "s3.session-token-expires-at-ms": str(found.expires_millis),
        "client.refresh-credentials-endpoint": f"v1/namespaces/{name.database}/tables/{name.table}/credentials",
    }


def by_place(served: Served, found: StoreCredentials, name: TableName) -> list[dict[str, Any]]:
    """Return the list ``storage-credentials``: the properties for each directory that they are for."""
    places = () if served.vending is None else served.vending.places(name)
    return [{"prefix": f"{absolute_place(each)}/", "config": as_config(found, name)} for each in places]
