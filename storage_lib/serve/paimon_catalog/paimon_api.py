"""The paths of Paimon's REST catalog (apache/paimon, docs/static/rest-catalog-open-api.yaml): databases and tables.

Other requests get 501, which Paimon's clients take as "compute it from the files".
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from storage_lib.catalog.table_name import TableName
from storage_lib.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from storage_lib.file_store.snapshot.snapshot_json import encode_snapshot
from storage_lib.io.file_io_factory import absolute_place
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.access.served_client import ServedClient
from storage_lib.serve.paimon_catalog.foreign_commit import commit_snapshot
from storage_lib.serve.paimon_catalog.paimon_requests import changes_of, descriptor, identifier
from storage_lib.serve.paimon_catalog.served_tables import loaded_table, no_table, of_this_warehouse
from storage_lib.serve.requests.json_body import JsonObject, text, text_list, texts
from storage_lib.serve.requests.name_pages import page_of
from storage_lib.serve.requests.served import Client, Served, ServedParts, client_of
from storage_lib.serve.requests.served_databases import require_database, shown_databases
from storage_lib.table.dynamic_table import DynamicTable

_DATABASES = "/v1/{prefix}/databases"
_DATABASE = f"{_DATABASES}/{{database}}"
_RENAME = "/v1/{prefix}/tables/rename"
_TABLE = f"{_DATABASE}/tables/{{table}}"
_NO_AUDIT = {"owner": "", "createdAt": 0, "createdBy": "", "updatedAt": 0, "updatedBy": ""}

router = APIRouter(dependencies=[Depends(client_of), Depends(of_this_warehouse)])
MaxResults = Annotated[str | None, Query(alias="maxResults")]
PageToken = Annotated[str | None, Query(alias="pageToken")]


@router.get("/v1/config", summary="The catalog's settings")
def config(served: ServedParts, client: Client, warehouse: str = "") -> JSONResponse:
    """Return what clients have to set: the prefix of paths, and whether they get credentials, which only read."""
    if warehouse not in ("", served.warehouse):
        message = f"this server has one warehouse, {served.warehouse!r}: name that one"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    tokens = "false" if served.vending is None or client.write else "true"
    return JSONResponse({"defaults": {}, "overrides": {"prefix": served.warehouse, "data-token.enabled": tokens}})


@router.get(_DATABASES, summary="All databases that the client may read")
def list_databases(
    served: ServedParts,
    client: Client,
    size: MaxResults = None,
    token: PageToken = None,
    pattern: Annotated[str | None, Query(alias="databaseNamePattern")] = None,
) -> JSONResponse:
    """Return the databases."""
    found = [each for each in shown_databases(served.catalog, client) if _matches(each, pattern)]
    names, following = page_of(found, size, token)
    return JSONResponse({"databases": names, "nextPageToken": following})


@router.post(_DATABASES, summary="Create a database")
def create_database(served: ServedParts, client: Client, body: JsonObject) -> Response:
    """Create a database with its options."""
    name = text(body, "name")
    client.require_write(name)
    options = texts(body, "options")
    if "location" in options:
        message = "a database lies in the warehouse: leave its location out"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    try:
        served.catalog.create_database(name, options)
    except AlreadyExistsError as error:
        message = "the database exists"
        raise RefusedRequestError(Refusal.DATABASE_EXISTS, message, resource=name) from error
    return Response(status_code=200)


@router.get(_DATABASE, summary="A database")
def load_database(served: ServedParts, client: Client, database: str) -> JSONResponse:
    """Return a database's options and place."""
    require_database(served.catalog, client, database)
    options = served.catalog.database_properties(database)
    place = options.get("location") or absolute_place(f"{served.catalog.warehouse}/{database}.db")
    return JSONResponse({"id": database, "name": database, "location": place, "options": options, **_NO_AUDIT})


@router.post(_DATABASE, summary="Set and remove properties of a database")
def alter_database(served: ServedParts, client: Client, database: str, body: JsonObject) -> JSONResponse:
    """Return which properties were removed and set, and which of those to remove were missing."""
    require_database(served.catalog, client, database, to_write=True)
    updates, removals = texts(body, "updates"), text_list(body, "removals")
    before = served.catalog.database_properties(database)
    served.catalog.alter_database(database, updates, remove=removals)
    return JSONResponse(
        {
            "removed": [key for key in removals if key in before],
            "updated": list(updates),
            "missing": [key for key in removals if key not in before],
        }
    )


@router.delete(_DATABASE, summary="Drop a database with its tables")
def drop_database(served: ServedParts, client: Client, database: str) -> Response:
    """Drop a database and all its tables: clients look whether it has any, unless they cascade."""
    require_database(served.catalog, client, database, to_write=True)
    if served.catalog.views.names(database):
        message = "the database has views, which only SQL and Python drop"
        raise RefusedRequestError(Refusal.DATABASE_NOT_EMPTY, message, resource=database)
    served.catalog.drop_database(database, cascade=True, if_exists=True)
    return Response(status_code=200)


@router.get(f"{_DATABASE}/tables", summary="The tables of a database")
def list_tables(
    served: ServedParts,
    client: Client,
    database: str,
    size: MaxResults = None,
    token: PageToken = None,
    pattern: Annotated[str | None, Query(alias="tableNamePattern")] = None,
    kind: Annotated[str, Query(alias="tableType")] = "table",
) -> JSONResponse:
    """Return the names of tables; all are of the type ``table``."""
    names, following = page_of(_tables(served, client, database, pattern, kind), size, token)
    return JSONResponse({"tables": names, "nextPageToken": following})


@router.get(f"{_DATABASE}/table-details", summary="The tables of a database with their schemas")
def list_table_details(
    served: ServedParts,
    client: Client,
    database: str,
    size: MaxResults = None,
    token: PageToken = None,
    pattern: Annotated[str | None, Query(alias="tableNamePattern")] = None,
    kind: Annotated[str, Query(alias="tableType")] = "table",
) -> JSONResponse:
    """Return tables as ``load_table`` does; one that is dropped meanwhile is left out."""
    names, following = page_of(_tables(served, client, database, pattern, kind), size, token)
    details = []
    for name in names:
        try:
            details.append(_described(served.catalog.load_table(f"{database}.{name}")))
        except NotFoundError:
            continue
    return JSONResponse({"tableDetails": details, "nextPageToken": following})


@router.post(f"{_DATABASE}/tables", summary="Create a table")
def create_table(served: ServedParts, client: Client, database: str, body: JsonObject) -> Response:
    """Create a table in a database that exists."""
    require_database(served.catalog, client, database, to_write=True)
    name = identifier(body.get("identifier"))
    if name.database != database:
        message = "the identifier names another database than the path"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    try:
        served.catalog.create_table(str(name), descriptor(body.get("schema")))
    except AlreadyExistsError as error:
        message = "a table or view of this name exists"
        raise RefusedRequestError(Refusal.TABLE_EXISTS, message, resource=name.table) from error
    return Response(status_code=200)


@router.get(_TABLE, summary="A table")
def load_table(served: ServedParts, client: Client, database: str, table: str) -> JSONResponse:
    """Return a table's newest schema and its place."""
    return JSONResponse(_described(loaded_table(served, client, database, table)))


@router.post(_TABLE, summary="Alter a table")
def alter_table(served: ServedParts, client: Client, database: str, table: str, body: JsonObject) -> Response:
    """Apply all changes of a request at once."""
    found = loaded_table(served, client, database, table, to_write=True)
    found.alter(*changes_of(body, found.schema))
    return Response(status_code=200)


@router.delete(_TABLE, summary="Drop a table")
def drop_table(served: ServedParts, client: Client, database: str, table: str) -> Response:
    """Drop a table with its files and its log."""
    name = _plain(client, database, table)
    try:
        served.catalog.drop_table(str(name))
    except NotFoundError as error:
        raise no_table(table) from error
    return Response(status_code=200)


@router.post(_RENAME, summary="Rename a table")
def rename_table(served: ServedParts, client: Client, body: JsonObject) -> Response:
    """Rename a table, also into another database that the client may change."""
    source, destination = identifier(body.get("source")), identifier(body.get("destination"))
    for each in (source, destination):
        require_database(served.catalog, client, each.database, to_write=True)
    if not served.catalog.table_exists(str(source)):
        raise no_table(source.table)
    try:
        served.catalog.rename_table(str(source), str(destination))
    except AlreadyExistsError as error:
        message = "a table or view of the new name exists"
        raise RefusedRequestError(Refusal.TABLE_EXISTS, message, resource=destination.table) from error
    return Response(status_code=200)


@router.get(f"{_TABLE}/snapshot", summary="The newest snapshot of a table")
def load_snapshot(served: ServedParts, client: Client, database: str, table: str) -> JSONResponse:
    """Return the newest snapshot; sizes of files are not computed."""
    latest = loaded_table(served, client, database, table).context.file_store.snapshots.latest()
    if latest is None:
        message = "the table has no snapshot"
        raise RefusedRequestError(Refusal.NO_SNAPSHOT, message, resource=table)
    shown = json.loads(encode_snapshot(latest))
    return JSONResponse(
        {
            "snapshot": {
                "snapshot": shown,
                "recordCount": latest.total_record_count,
                "fileSizeInBytes": 0,
                "fileCount": 0,
                "lastFileCreationTime": latest.time_millis,
            }
        }
    )


@router.post(f"{_TABLE}/commit", summary="Commit a snapshot")
def commit(served: ServedParts, client: Client, database: str, table: str, body: JsonObject) -> JSONResponse:
    """Make a snapshot the next one of a table; ``success`` is false if another commit was faster."""
    found = loaded_table(served, client, database, table, to_write=True)
    if body.get("tableId") not in (None, found.uuid):
        message = "the table was dropped and created again: load it again"
        raise RefusedRequestError(Refusal.NO_TABLE, message, resource=table)
    is_made = commit_snapshot(found, body.get("snapshot"), body.get("baseSnapshotUuid"))
    return JSONResponse({"success": is_made})


@router.post(f"{_TABLE}/rollback", summary="Restore the rows of an older snapshot")
def rollback(served: ServedParts, client: Client, database: str, table: str, body: JsonObject) -> Response:
    """Restore an older snapshot's rows in a new snapshot: this library deletes no snapshot for that."""
    found = loaded_table(served, client, database, table, to_write=True)
    instant: Any = body.get("instant")
    match instant if isinstance(instant, dict) else {}:
        case {"type": "snapshot", "snapshotId": int(number)} if not isinstance(number, bool):
            refusal = RefusedRequestError(Refusal.NO_SNAPSHOT, "the snapshot does not exist", resource=str(number))
            wanted: dict[str, Any] = {"snapshot_id": number}
        case {"type": "tag", "tagName": str(tag)}:
            refusal = RefusedRequestError(Refusal.NO_TAG, "the tag does not exist", resource=tag)
            wanted = {"tag": tag}
        case _:
            message = "instant has to name a snapshot or a tag"
            raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    try:
        found.rollback_to(**wanted)
    except NotFoundError as error:
        raise refusal from error
    return Response(status_code=200)


@router.api_route("/v1/{rest:path}", methods=["GET", "POST", "DELETE"], include_in_schema=False)
def not_implemented(rest: str) -> Response:  # noqa: ARG001  whatever it is
    """Answer 501: clients then compute the answer from the files."""
    message = "the server does not support this part of Paimon's REST catalog"
    raise RefusedRequestError(Refusal.NOT_IMPLEMENTED, message)


def _tables(served: Served, client: ServedClient, database: str, pattern: str | None, kind: str) -> list[str]:
    require_database(served.catalog, client, database)
    if kind != "table":
        return []
    names = (TableName.parse_plain(each).table for each in served.catalog.list_tables(database))
    return [each for each in names if _matches(each, pattern)]


def _plain(client: ServedClient, database: str, table: str) -> TableName:
    client.require_write(database)
    try:
        return TableName.parse_plain(f"{database}.{table}")
    except InvalidInputError as error:
        raise no_table(table) from error


def _described(table: DynamicTable) -> dict[str, Any]:
    schema = json.loads(table.schema.to_json())
    _, _, name = table.name.partition(".")
    return {
        "id": table.uuid,
        "database": table.name.partition(".")[0],
        "name": name,
        "path": absolute_place(table.location),
        "isExternal": False,
        "schemaId": schema["id"],
        "schema": {
            "fields": schema["fields"],
            "partitionKeys": schema["partitionKeys"],
            "primaryKeys": schema["primaryKeys"],
            "options": schema["options"],
            "comment": schema.get("comment"),
        },
        **_NO_AUDIT,
        "updatedAt": schema["timeMillis"],
    }


def _matches(name: str, pattern: str | None) -> bool:
    """Return whether a name has the form of SQL's LIKE; Paimon admits ``%`` at its end only."""
    if pattern is None:
        return True
    if not re.fullmatch(r"(?:\\.|[^\\%])*%*", pattern, re.DOTALL):
        message = "a pattern of names may have % at its end only"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    form = "".join(
        re.escape(each[1]) if len(each) == 2 else ".*" if each == "%" else "." if each == "_" else re.escape(each)
        for each in parts
    )
    return re.fullmatch(form, name, re.DOTALL) is not None
