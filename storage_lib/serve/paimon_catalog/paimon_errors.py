"""Refusals in the words of Paimon's REST catalog: ``{"message", "resourceType", "resourceName", "code"}``."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.requests.answered_errors import answer_errors_as

_DATABASE, _TABLE = "DATABASE", "TABLE"
_RESOURCES = {
    Refusal.NO_DATABASE: _DATABASE,
    Refusal.DATABASE_EXISTS: _DATABASE,
    Refusal.DATABASE_NOT_EMPTY: _DATABASE,
    Refusal.NO_TABLE: _TABLE,
    Refusal.TABLE_EXISTS: _TABLE,
    Refusal.NO_SNAPSHOT: "SNAPSHOT",
    Refusal.NO_TAG: "TAG",
    Refusal.NO_COLUMN: "COLUMN",
    Refusal.TAG_EXISTS: "TAG",
    Refusal.NO_BRANCH: "BRANCH",
    Refusal.BRANCH_EXISTS: "BRANCH",
}


def answer_errors(app: FastAPI) -> None:
    """Make an application answer all errors in Paimon's form."""
    answer_errors_as(app, _answer)


def _answer(error: RefusedRequestError) -> JSONResponse:
    body = {
        "message": error.message,
        "resourceType": _RESOURCES.get(error.refusal),
        "resourceName": error.resource or None,
        "code": error.refusal.status,
    }
    return JSONResponse(body, status_code=error.refusal.status)
