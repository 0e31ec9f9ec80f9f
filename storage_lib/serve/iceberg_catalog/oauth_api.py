"""Access tokens for the id and secret of a client (OAuth2 client credentials), as Iceberg's clients ask for them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated
from urllib.parse import parse_qs, unquote_plus

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse

from storage_lib.serve.access.refusal import RefusedRequestError
from storage_lib.serve.requests.json_body import body_bytes
from storage_lib.serve.requests.served import ServedParts

_CREDENTIALS = "client_credentials"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  the name of a kind of tokens

router = APIRouter()


@router.post("/v1/oauth/tokens", summary="An access token for a client's id and secret")
def access_token(request: Request, served: ServedParts, body: Annotated[bytes, Depends(body_bytes)]) -> JSONResponse:
    """Return an access token; the id is a client's name, the secret its token in the file of clients."""
    try:
        form = {key: values[-1] for key, values in parse_qs(body.decode(), max_num_fields=50).items()}
        name, secret = _basic(request.headers.get("authorization")) or (
            form.get("client_id", ""),
            form.get("client_secret", ""),
        )
    except ValueError:
        return _refusal("invalid_request", "the form or the header can't be read", 400)
    grant = form.get("grant_type", "")
    if grant not in (_CREDENTIALS, _EXCHANGE):
        return _refusal("unsupported_grant_type", f"grant_type has to be {_CREDENTIALS}", 400)
    try:
        if secret or grant == _CREDENTIALS:
            token, lifetime_millis = served.access.access_token(name, secret)
        else:
            token, lifetime_millis = served.access.renewed_token(form.get("subject_token", ""))
    except RefusedRequestError as error:
        if error.refusal.status != 401:
            raise
        return _refusal("invalid_client", error.message, 401)
    found = {
        "access_token": token,
        "token_type": "bearer",
        "expires_in": lifetime_millis // 1000,
        "issued_token_type": _ACCESS_TOKEN,
    }
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


def _basic(header: str | None) -> tuple[str, str] | None:
    """Return id and secret of a Basic header, None for another one. Raises ``ValueError`` if it can't be read."""
    scheme, _, encoded = (header or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except binascii.Error as error:
        message = "not base64"
        raise ValueError(message) from error
    if not colon:
        message = "no colon"
        raise ValueError(message)
    return unquote_plus(name), unquote_plus(secret)


def _refusal(kind: str, description: str, status: int) -> JSONResponse:
    return JSONResponse({"error": kind, "error_description": description}, status_code=status)
