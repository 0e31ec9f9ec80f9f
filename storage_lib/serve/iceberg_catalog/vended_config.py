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

DELEGATION = "X-Iceberg-Access-Delegation"
"""The header by which a client asks. Its values are separated by commas, and it may be sent several times."""
_VENDED = "vended-credentials"


def wants_credentials(delegation: list[str] | None) -> bool:
    """Return whether the headers name the form of access that this server has."""
    return _VENDED in [each.strip().lower() for each in ",".join(delegation or []).split(",")]


def storage_credentials(served: Served, client: ServedClient, name: TableName, location: str) -> list[dict[str, Any]]:
    """Return ``storage-credentials`` that read a table in ``location``: one ``config`` for each of its directories.

    Raises ``RefusedRequestError`` if the server makes none, and as ``Vending.credentials``.
    """
    if served.vending is None:
        message = "this server makes no credentials: use your own for the store"
        raise RefusedRequestError(Refusal.NO_SUCH_PATH, message)
    found = served.vending.credentials(client.name, name, location)
    config = {
        "s3.access-key-id": found.access_key,
        "s3.secret-access-key": found.secret_key,
        "s3.session-token": found.session_token,
        "s3.session-token-expires-at-ms": str(found.expires_millis),
        "client.refresh-credentials-endpoint": f"v1/namespaces/{name.database}/tables/{name.table}/credentials",
    }
    return [{"prefix": f"{absolute_place(each)}/", "config": config} for each in served.vending.places(name)]
