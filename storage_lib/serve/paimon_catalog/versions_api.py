"""Tags and branches in Paimon's REST catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from storage_lib.errors import AlreadyExistsError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot_json import encode_snapshot
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.paimon_catalog.served_tables import TABLE_PATH, loaded_table, of_this_warehouse
from storage_lib.serve.requests.json_body import JsonObject, text
from storage_lib.serve.requests.name_pages import page_of
from storage_lib.serve.requests.served import Client, ServedParts, client_of

_TAGS, _BRANCHES = f"{TABLE_PATH}/tags", f"{TABLE_PATH}/branches"
_TAG, _BRANCH = f"{_TAGS}/{{tag}}", f"{_BRANCHES}/{{branch}}"

router = APIRouter(dependencies=[Depends(client_of), Depends(of_this_warehouse)])
MaxResults = Annotated[str | None, Query(alias="maxResults")]
PageToken = Annotated[str | None, Query(alias="pageToken")]


@router.get(_TAGS, summary="The tags of a table")
def list_tags(
    served: ServedParts,
    client: Client,
    database: str,
    table: str,
    size: MaxResults = None,
    token: PageToken = None,
    beginning: Annotated[str, Query(alias="tagNamePrefix")] = "",
) -> JSONResponse:
    """Return the names of tags."""
    found = loaded_table(served, client, database, table).tags.list()
    names, following = page_of([each.name for each in found if each.name.startswith(beginning)], size, token)
    return JSONResponse({"tags": names, "nextPageToken": following})


@router.post(_TAGS, summary="Tag a snapshot")
def create_tag(served: ServedParts, client: Client, database: str, table: str, body: JsonObject) -> Response:
    """Tag a snapshot, by default the newest."""
    name, number, retained = text(body, "tagName"), body.get("snapshotId"), body.get("timeRetained")
    if not (number is None or (isinstance(number, int) and not isinstance(number, bool))):
        message = "snapshotId has to be a number"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    found = loaded_table(served, client, database, table, to_write=True)
    with _refusing(
        {
            AlreadyExistsError: RefusedRequestError(Refusal.TAG_EXISTS, "the tag exists", resource=name),
            NotFoundError: _no_snapshot(number),
            SnapshotExpiredError: _no_snapshot(number),
        }
    ):
        found.tags.create(name, number, time_retained=None if retained is None else text(body, "timeRetained"))
    return Response(status_code=200)


@router.get(_TAG, summary="A tag with its snapshot")
def load_tag(served: ServedParts, client: Client, database: str, table: str, tag: str) -> JSONResponse:
    """Return the snapshot that a tag names."""
    found = loaded_table(served, client, database, table)
    with _refusing({NotFoundError: _no_tag(tag)}):
        loaded = found.tags.load(tag)
    retained = loaded.time_retained_ms
    return JSONResponse(
        {
            "tagName": tag,
            "snapshot": json.loads(encode_snapshot(loaded.snapshot)),
            "tagCreateTime": loaded.create_time_ms,
            "tagTimeRetained": None if retained is None else f"{retained} ms",
        }
    )


@router.delete(_TAG, summary="Delete a tag")
def delete_tag(served: ServedParts, client: Client, database: str, table: str, tag: str) -> Response:
    """Delete a tag, and the files that only it needs."""
    found = loaded_table(served, client, database, table, to_write=True)
    with _refusing({NotFoundError: _no_tag(tag)}):
        found.tags.delete(tag)
    return Response(status_code=200)


@router.get(_BRANCHES, summary="The branches of a table")
def list_branches(served: ServedParts, client: Client, database: str, table: str) -> JSONResponse:
    """Return the names of branches."""
    return JSONResponse({"branches": list(loaded_table(served, client, database, table).branches.list())})


@router.post(_BRANCHES, summary="Create a branch")
def create_branch(served: ServedParts, client: Client, database: str, table: str, body: JsonObject) -> Response:
    """Create a branch that begins with a tag, or with the newest snapshot."""
    name = text(body, "branch")
    tag = None if body.get("fromTag") is None else text(body, "fromTag")
    found = loaded_table(served, client, database, table, to_write=True)
    with _refusing(
        {
            AlreadyExistsError: RefusedRequestError(Refusal.BRANCH_EXISTS, "the branch exists", resource=name),
            NotFoundError: _no_tag(tag or ""),
        }
    ):
        found.branches.create(name, tag=tag)
    return Response(status_code=200)


@router.delete(_BRANCH, summary="Delete a branch")
def delete_branch(served: ServedParts, client: Client, database: str, table: str, branch: str) -> Response:
    """Delete a branch, and the files that only it needs."""
    found = loaded_table(served, client, database, table, to_write=True)
    with _refusing({NotFoundError: _no_branch(branch)}):
        found.branches.delete(branch)
    return Response(status_code=200)


@router.post(f"{_BRANCH}/forward", summary="Replace a table's content by a branch's")
def forward_branch(served: ServedParts, client: Client, database: str, table: str, branch: str) -> Response:
    """Fast-forward the table to the branch, in one new snapshot."""
    found = loaded_table(served, client, database, table, to_write=True)
    with _refusing({NotFoundError: _no_branch(branch)}):
        found.branches.fast_forward(branch)
    return Response(status_code=200)


@contextmanager
def _refusing(refusals: dict[type[Exception], RefusedRequestError]) -> Iterator[None]:
    """Turn errors of these classes into their refusals."""
    try:
        yield
    except tuple(refusals) as error:
        raise refusals[type(error)] from error


def _no_snapshot(number: object) -> RefusedRequestError:
    return RefusedRequestError(Refusal.NO_SNAPSHOT, "the snapshot does not exist", resource=str(number))


def _no_tag(tag: str) -> RefusedRequestError:
    return RefusedRequestError(Refusal.NO_TAG, "the tag does not exist", resource=tag)


def _no_branch(branch: str) -> RefusedRequestError:
    return RefusedRequestError(Refusal.NO_BRANCH, "the branch does not exist", resource=branch)
