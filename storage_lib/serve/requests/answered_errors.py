"""Turns all errors of an application into refusals, which each catalog answers in its own form."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from storage_lib.errors import StorageError
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError
from storage_lib.serve.requests.refused_errors import refused

_HEADERS: Mapping[Refusal, Mapping[str, str]] = {
    Refusal.UNAUTHENTICATED: {"WWW-Authenticate": "Bearer"},
    Refusal.UNAVAILABLE: {"Retry-After": "5"},
}


def answer_errors_as(app: FastAPI, answer: Callable[[RefusedRequestError], Response]) -> None:
    """Make an application answer every error by ``answer`` of its refusal."""

    def answered(error: RefusedRequestError) -> Response:
        response = answer(error)
        response.headers.update(_HEADERS.get(error.refusal, {}))
        return response

    @app.exception_handler(RefusedRequestError)
    def on_refusal(_: Request, error: RefusedRequestError) -> Response:
        return answered(error)

    @app.exception_handler(StorageError)
    def on_storage_error(_: Request, error: StorageError) -> Response:
        return answered(refused(error))

    @app.exception_handler(RequestValidationError)
    def on_invalid(_: Request, __: RequestValidationError) -> Response:
        return answered(RefusedRequestError(Refusal.BAD_REQUEST, "a parameter of the request is not valid"))

    @app.exception_handler(HTTPException)
    def on_no_route(_: Request, error: HTTPException) -> Response:
        if error.status_code != Refusal.WRONG_METHOD.status:
            return answered(RefusedRequestError(Refusal.NO_SUCH_PATH, "the server has no such path"))
        response = answered(RefusedRequestError(Refusal.WRONG_METHOD, "this path has no such method"))
        response.headers.update(error.headers or {})
        return response

    @app.exception_handler(Exception)
    def on_defect(_: Request, __: Exception) -> Response:
        # Starlette raises the error again after the answer, so that the server logs it.
        return answered(RefusedRequestError(Refusal.INTERNAL, "the request failed; the server's log says why"))
