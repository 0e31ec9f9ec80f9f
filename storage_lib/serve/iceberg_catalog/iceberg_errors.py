"""Refusals in the words of Iceberg's REST catalog: ``{"error": {"message", "type", "code"}}``."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from storage_lib.errors import StorageError
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.requests.refused_errors import refused

_TYPES = {
    Refusal.BAD_REQUEST: "BadRequestException",
    Refusal.UNAUTHENTICATED: "NotAuthorizedException",
    Refusal.FORBIDDEN: "ForbiddenException",
    Refusal.NO_DATABASE: "NoSuchNamespaceException",
    Refusal.NO_TABLE: "NoSuchTableException",
    Refusal.NO_SUCH_PATH: "NotFoundException",
    Refusal.WRONG_METHOD: "UnsupportedOperationException",
    Refusal.DATABASE_EXISTS: "AlreadyExistsException",
    Refusal.TABLE_EXISTS: "AlreadyExistsException",
    Refusal.DATABASE_NOT_EMPTY: "NamespaceNotEmptyException",
    Refusal.CONFLICT: "CommitFailedException",
    Refusal.BODY_TOO_LARGE: "BadRequestException",
    Refusal.INTERNAL: "InternalServerError",
    Refusal.NOT_IMPLEMENTED: "UnsupportedOperationException",
    Refusal.UNAVAILABLE: "ServiceUnavailableException",
}


def answer_errors(app: FastAPI) -> None:
    """Make an application answer all errors in Iceberg's form."""

    @app.exception_handler(RefusedRequestError)
    def on_refusal(_: Request, error: RefusedRequestError) -> JSONResponse:
        return _answer(error)

    @app.exception_handler(StorageError)
    def on_storage_error(_: Request, error: StorageError) -> JSONResponse:
        return _answer(refused(error))

    @app.exception_handler(RequestValidationError)
    def on_invalid(_: Request, __: RequestValidationError) -> JSONResponse:
        return _answer(RefusedRequestError(Refusal.BAD_REQUEST, "a parameter of the request is not valid"))

    @app.exception_handler(HTTPException)
    def on_no_route(_: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == Refusal.WRONG_METHOD.status:
            return _answer(RefusedRequestError(Refusal.WRONG_METHOD, "this path has no such method"), error.headers)
        return _answer(RefusedRequestError(Refusal.NO_SUCH_PATH, "the server has no such path"))

    @app.exception_handler(Exception)
    def on_defect(_: Request, __: Exception) -> JSONResponse:
        # Starlette raises the error again after the answer, so that the server logs it.
        return _answer(RefusedRequestError(Refusal.INTERNAL, "the request failed; the server's log says why"))


def _answer(error: RefusedRequestError, headers: object = None) -> JSONResponse:
    status = error.refusal.status
    body = {"error": {"message": error.message, "type": _TYPES[error.refusal], "code": status}}
    answered = JSONResponse(body, status_code=status, headers=dict(headers) if isinstance(headers, dict) else None)
    if error.refusal is Refusal.UNAUTHENTICATED:
        answered.headers["WWW-Authenticate"] = "Bearer"
    if error.refusal is Refusal.UNAVAILABLE:
        answered.headers["Retry-After"] = "5"
    return answered
