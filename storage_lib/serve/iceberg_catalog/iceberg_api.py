"""The paths of Iceberg's REST catalog (apache/iceberg, open-api/rest-catalog-open-api.yaml) that read.

Databases are its namespaces, of one level, and tables that have an Iceberg view are its tables. The views are written
by the tables' own commits, so every path that writes is refused.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import JSONResponse

from storage_lib.catalog.catalog import Catalog
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, NotFoundError, StorageError
from storage_lib.iceberg.iceberg_view import IcebergView
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import ServedClient
from storage_lib.serve.iceberg_catalog.shown_document import ALL, REFS, is_known, of_snapshots, store_settings, tag_of
from storage_lib.serve.iceberg_catalog.vended_config import DELEGATION, storage_credentials, wants_credentials
from storage_lib.serve.requests.name_pages import page_of
from storage_lib.serve.requests.served import Client, Served, ServedParts, client_of
from storage_lib.serve.requests.served_databases import require_database, shown_databases

_LOGGER = logging.getLogger(__name__)
_NAMESPACE, _TABLE = "/v1/namespaces/{namespace}", "/v1/namespaces/{namespace}/tables/{table}"
_WRITES = (
    ("POST", "/v1/namespaces"),
    ("DELETE", _NAMESPACE),
    ("POST", f"{_NAMESPACE}/properties"),
    ("POST", f"{_NAMESPACE}/tables"),
    ("POST", f"{_NAMESPACE}/register"),
    ("POST", f"{_NAMESPACE}/views"),
    ("POST", _TABLE),
    ("DELETE", _TABLE),
    ("POST", "/v1/tables/rename"),
    ("POST", "/v1/transactions/commit"),
)
_READ_ONLY = (
    "this catalog is read-only: its tables are views, which every commit of the tables they show rewrites. Write to "
    "the table with Python, Spark, SQL or an engine of Paimon"
)
_NOT_KEPT = "private, no-store"

router = APIRouter(dependencies=[Depends(client_of)])
PageSize = Annotated[str | None, Query(alias="pageSize")]
PageToken = Annotated[str | None, Query(alias="pageToken")]


@router.get("/v1/config", summary="The catalog's settings")
def config(served: ServedParts, warehouse: str = "") -> JSONResponse:
    """Return what the catalog can do. A client may name the warehouse; there is one."""
    if warehouse not in ("", served.warehouse):
        message = f"this server has one warehouse, {served.warehouse!r}: name that one, or none"
        raise RefusedRequestError(Refusal.NO_SUCH_PATH, message)
    return JSONResponse({"defaults": {}, "overrides": {}, "endpoints": list(_endpoints(served))})


@router.get("/v1/namespaces", summary="All databases that the client may read")
def list_namespaces(
    served: ServedParts, client: Client, parent: str = "", page_size: PageSize = None, page_token: PageToken = None
) -> JSONResponse:
    """Return the databases; below a database there are none."""
    if parent:
        require_database(served.catalog, client, parent)
    found = [] if parent else shown_databases(served.catalog, client)
    names, following = page_of(found, page_size, page_token)
    return JSONResponse({"namespaces": [[each] for each in names], "next-page-token": following})


@router.get(_NAMESPACE, summary="A database")
def load_namespace(served: ServedParts, client: Client, namespace: str) -> JSONResponse:
    """Return a database's properties."""
    require_database(served.catalog, client, namespace)
    return JSONResponse({"namespace": [namespace], "properties": served.catalog.database_properties(namespace)})


@router.head(_NAMESPACE, summary="Whether a database exists", status_code=204)
def namespace_exists(served: ServedParts, client: Client, namespace: str) -> Response:
    """Return 204 for a database that exists."""
    require_database(served.catalog, client, namespace)
    return Response(status_code=204)


@router.get(f"{_NAMESPACE}/tables", summary="The tables of a database that have an Iceberg view")
def list_tables(
    served: ServedParts, client: Client, namespace: str, page_size: PageSize = None, page_token: PageToken = None
) -> JSONResponse:
    """Return tables with a view; the others can't be read as Iceberg, and are left out."""
    require_database(served.catalog, client, namespace)
    names, following = page_of(_with_views(served.catalog, namespace), page_size, page_token)
    identifiers = [{"namespace": [namespace], "name": each} for each in names]
    return JSONResponse({"identifiers": identifiers, "next-page-token": following})


@router.get(_TABLE, summary="A table's metadata")
def load_table(
    served: ServedParts,
    client: Client,
    namespace: str,
    table: str,
    snapshots: str = ALL,
    if_none_match: Annotated[str | None, Header()] = None,
    delegation: Annotated[list[str] | None, Header(alias=DELEGATION)] = None,
) -> Response:
    """Return the newest metadata of a view, or 304 if the client has it; with credentials if it asks for them."""
    if snapshots not in (ALL, REFS):
        message = f"snapshots has to be {ALL} or {REFS}"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    shown = _shown(served, client, namespace, table)
    config, caching = store_settings(served.catalog.options), "private, no-cache"
    value: dict[str, Any] = {
        "metadata-location": shown.path,
        "metadata": of_snapshots(json.loads(shown.document), snapshots),
        "config": config,
    }
    if served.vending is not None and wants_credentials(delegation):
        lent = storage_credentials(served, client, shown.name, shown.location)
        config.update(lent[0]["config"])
        value["storage-credentials"] = lent
        caching = _NOT_KEPT
    body = json.dumps(value, separators=(",", ":")).encode()
    headers = {"ETag": tag_of(body), "Cache-Control": caching, "Vary": DELEGATION}
    if is_known(headers["ETag"], if_none_match):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.head(_TABLE, summary="Whether a table exists", status_code=204)
def table_exists(served: ServedParts, client: Client, namespace: str, table: str) -> Response:
    """Return 204 for a table that can be loaded."""
    _shown(served, client, namespace, table)
    return Response(status_code=204)


@router.get(f"{_TABLE}/credentials", summary="Temporary credentials for a table's files")
def load_credentials(served: ServedParts, client: Client, namespace: str, table: str) -> JSONResponse:
    """Return credentials that read a table, for a client whose older ones end."""
    shown = _shown(served, client, namespace, table)
    body = {"storage-credentials": storage_credentials(served, client, shown.name, shown.location)}
    return JSONResponse(body, headers={"Cache-Control": _NOT_KEPT})


@router.post(f"{_TABLE}/metrics", summary="A client's report of a scan", status_code=204)
def report_metrics(client: Client, namespace: str) -> Response:
    """Take the report, which is not kept."""
    client.require_read(namespace)
    return Response(status_code=204)


def _refuse_write() -> Response:
    """Refuse: the catalog is read-only."""
    raise RefusedRequestError(Refusal.FORBIDDEN, _READ_ONLY)


for _method, _path in _WRITES:
    router.add_api_route(_path, _refuse_write, methods=[_method], summary="Refused: the catalog is read-only")


def _endpoints(served: Served) -> Iterator[str]:
    """Yield what the catalog can do, as clients look for it: with a prefix, which is empty here."""
    credentials = () if served.vending is None else (("GET", f"{_TABLE}/credentials"),)
    for method, path in (
        *(("GET", "/v1/namespaces"), ("GET", _NAMESPACE), ("HEAD", _NAMESPACE), ("GET", f"{_NAMESPACE}/tables")),
        *(("GET", _TABLE), ("HEAD", _TABLE), ("POST", f"{_TABLE}/metrics")),
        *credentials,
    ):
        yield f"{method} {path.replace('/v1/', '/v1/{prefix}/', 1)}"


def _with_views(catalog: Catalog, database: str) -> Iterator[str]:
    for name in catalog.list_tables(database):
        try:
            if _view(catalog, name) is not None:
                yield TableName.parse_plain(name).table
        except NotFoundError:  # dropped meanwhile
            continue
        except StorageError as error:
            _LOGGER.warning("table %s is left out of a list: %s", name, error)


def _view(catalog: Catalog, name: str) -> IcebergView | None:
    return catalog.load_table(name).context.iceberg_view


class _Shown(NamedTuple):
    """The newest metadata of a view: its path and content, and the directory of the table."""

    name: TableName
    location: str
    path: str
    document: bytes


def _shown(served: Served, client: ServedClient, namespace: str, table: str) -> _Shown:
    """Return what a table's view shows. Raises ``RefusedRequestError`` if there is none."""
    client.require_read(namespace)
    resource = f"{namespace}.{table}"
    try:
        name = TableName.parse_plain(resource)
        found = served.catalog.load_table(str(name))
    except (InvalidInputError, NotFoundError) as error:
        raise RefusedRequestError(Refusal.NO_TABLE, "the table does not exist", resource=resource) from error
    view = found.context.iceberg_view
    if view is None:
        message = (
            "the table has no Iceberg view; ALTER TABLE ... SET ('metadata.iceberg.storage' = 'table-location') "
            "publishes one"
        )
        raise RefusedRequestError(Refusal.NO_TABLE, message, resource=resource)
    document = view.document()
    if document is None:
        message = "the table's Iceberg view has not been published yet; its next commit does so"
        raise RefusedRequestError(Refusal.NO_TABLE, message, resource=resource)
    return _Shown(name, found.location, *document)
