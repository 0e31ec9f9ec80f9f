"""Errors of the library as refusals: their messages name paths and other tables, so few of them are passed on."""

from __future__ import annotations

import logging
import re

from storage_lib.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    RetryableError,
    SnapshotExpiredError,
    StorageError,
)
from storage_lib.serve.access.refusal import Refusal, RefusedRequestError

_LOGGER = logging.getLogger(__name__)
_PATH = re.compile(r"(?:\b[A-Za-z][A-Za-z0-9+.-]*:/|(?<![\w/]))/[^\s'\",;()]*")
"""A path that begins at the root, or a URL."""


_WORDS: tuple[tuple[type[StorageError], Refusal, str], ...] = (
    (AlreadyExistsError, Refusal.TABLE_EXISTS, "a table, view or topic of this name exists"),
    (NotFoundError, Refusal.NO_TABLE, "the table does not exist"),
    (SnapshotExpiredError, Refusal.NO_SNAPSHOT, "the snapshot has expired"),
    (CommitConflictError, Refusal.CONFLICT, "another commit has changed the same; read again, and retry"),
)


def refused(error: StorageError) -> RefusedRequestError:
    """Return the refusal for an error of the library; what is not the client's fault is logged."""
    if isinstance(error, InvalidInputError):
        return RefusedRequestError(Refusal.BAD_REQUEST, without_paths(str(error)))
    for kind, refusal, words in _WORDS:
        if isinstance(error, kind):
            return RefusedRequestError(refusal, words)
    if isinstance(error, RetryableError):
        _LOGGER.warning("a request failed, and may be repeated: %s", error)
        return RefusedRequestError(
            Refusal.UNAVAILABLE, "the tables' storage, or its token service, does not answer; try again later"
        )
    _LOGGER.error("a request failed: %s", error, exc_info=error)
    return RefusedRequestError(Refusal.INTERNAL, "the request failed; the server's log says why")


def without_paths(text: str) -> str:
    """Return a message without paths and URLs."""
    return _PATH.sub("<path>", text)
