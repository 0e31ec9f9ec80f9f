"""Translate errors of an object store's client into errors of this library."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore.exceptions import (
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from storage_lib.errors import InvalidInputError, NotFoundError, UnavailableError

PERMANENT = (
    PermissionDeniedError,
    UnauthenticatedError,
    InvalidPathError,
    NotSupportedError,
    UnknownConfigurationKeyError,
)
"""Errors of refused requests, which changed nothing and would be refused again."""
# For a listing, the client reports the status only as text.
_NO_BUCKET = "<Code>NoSuchBucket</Code>"
_FORBIDDEN = "status code: 403"
_QUERY = re.compile(r"(?<=\S)\?\S+")
_NEVER_SENT = "kind: Connect"


@contextmanager
def errors_of(act: str, path: str) -> Iterator[None]:
    """Convert the client's errors in the block to ours, which name the failed operation."""
    try:
        yield
    except (BaseError, FileNotFoundError) as error:
        raise translated(act, path, error) from error


def translated(act: str, path: str, error: Exception) -> Exception:
    """Return this library's equivalent of a client's error."""
    if _NO_BUCKET in str(error):
        return InvalidInputError(f"can't {act} {path}: there is no such bucket. Make it, or mend the URL")
    if isinstance(error, FileNotFoundError):
        return NotFoundError(f"can't {act} {path}: there is no such file")
    if isinstance(error, PERMANENT) or _FORBIDDEN in str(error):
        remedy = (
            "Check the URL, the credentials (the store's options, its environment variables or the machine's role) and "
            "what they allow"
        )
        return InvalidInputError(f"can't {act} {path}: {first_line(error)}. {remedy}")
    return UnavailableError(f"can't {act} {path}: {first_line(error)}. Try again when the store answers")


def was_never_sent(error: Exception) -> bool:
    """Whether the connection failed, so that the store can't have executed the request.

    Valid only for a client without retries: one with retries reports only its last attempt.
    """
    return _NEVER_SENT in str(error)


def first_line(error: Exception) -> str:
    """Return the first line of a client's error, without debugging details and signatures in URLs."""
    return _QUERY.sub("", str(error).partition("\n")[0])
