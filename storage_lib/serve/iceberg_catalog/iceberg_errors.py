"""Refusals in the words of Iceberg's REST catalog: ``{"error": {"message", "type", "code"}}``."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import JSONResponse

from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.requests.answered_errors import answer_errors_as

_TYPES = {
    Refusal.BAD_REQUEST: "BadRequestException",
    Refusal.UNAUTHENTICATED: "NotAuthorizedException",
    Refusal.FORBIDDEN: "ForbiddenException",
    Refusal.NO_DATABASE: "NoSuchNamespaceException",
    Refusal.NO_TABLE: "NoSuchTableException",
    Refusal.WRONG_METHOD: "UnsupportedOperationException",
    Refusal.BODY_TOO_LARGE: "BadRequestException",
    Refusal.CONFLICT: "CommitFailedException",
    Refusal.INTERNAL: "InternalServerError",
    Refusal.UNAVAILABLE: "ServiceUnavailableException",
}
_OTHER = "NotFoundException"


def answer_errors(app: FastAPI) -> None:
    """Make an application answer all errors in Iceberg's form."""
    answer_errors_as(app, _answer)


def _answer(error: RefusedRequestError) -> JSONResponse:
    status = error.refusal.status
    body = {"error": {"message": error.message, "type": _TYPES.get(error.refusal, _OTHER), "code": status}}
    return JSONResponse(body, status_code=status)
