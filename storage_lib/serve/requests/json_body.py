"""The JSON object in a request's body. Clients do not all send a Content-Type, so it is not looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request

from storage_lib.serve.access.refusal import Refusal, RefusedRequestError

BODY_BYTES_MAX = 4 * 1024 * 1024


async def body_bytes(request: Request) -> bytes:
    """Return the body. Raises ``RefusedRequestError`` if it is larger than ``BODY_BYTES_MAX``."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            message = f"the body is larger than {BODY_BYTES_MAX} bytes"
            raise RefusedRequestError(Refusal.BODY_TOO_LARGE, message)
    return bytes(data)


async def json_object(request: Request) -> dict[str, Any]:
    """Return the object in the body. Raises ``RefusedRequestError`` for anything else."""
    data = await body_bytes(request)
    try:
        value = json.loads(data, parse_constant=_refuse_constant)
        # Text that UTF-8 can't encode, as "\\ud800" is, could not be stored or returned.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        message = "the body is not a JSON object"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message) from error
    if not isinstance(value, dict):
        message = "the body is not a JSON object"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    return value


JsonObject = Annotated[dict[str, Any], Depends(json_object)]


def texts(body: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return a mapping of text to text, empty if it is left out. Raises ``RefusedRequestError`` for anything else."""
    found = body.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        message = f"{key} has to be an object whose values are strings"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    return dict(found)


def text(body: Mapping[str, Any], key: str) -> str:
    """Return a text that has to be there. Raises ``RefusedRequestError`` otherwise."""
    found = body.get(key)
    if not isinstance(found, str):
        message = f"{key} has to be a string"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    return found


def text_list(body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return a list of texts, empty if it is left out. Raises ``RefusedRequestError`` for anything else."""
    found = body.get(key)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        message = f"{key} has to be a list of strings"
        raise RefusedRequestError(Refusal.BAD_REQUEST, message)
    return tuple(found)


def _refuse_constant(name: str) -> float:
    message = f"{name} is not JSON"
    raise ValueError(message)
