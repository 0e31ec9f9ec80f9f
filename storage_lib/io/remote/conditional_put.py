"""Create-if-absent in an object store: a conditional put whose uncertain outcomes are looked up.

Every such put stores a unique mark in the object's metadata. Whatever the store answers, and even if it does not
answer, the mark of the stored object shows which put succeeded:

    created                         ─▶ ours
    name taken ───────────┐
    5xx, time-out, broken ┴▶ look ─▶ our mark: ours   other mark: lost   no object: put again   no answer: unknown

So a retried put that finds its own object counts as successful, and a 409, which S3 returns when a delete ran
concurrently, does not count as lost.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

from storage_lib.errors import CommitOutcomeUnknownError, UnavailableError
from storage_lib.io.remote.object_store_errors import PERMANENT, first_line, translated, was_never_sent

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_MARK = "creator"
"""Metadata key of letters only: Azure requires an identifier, and some proxies drop names with an underscore."""
_TAKEN = (AlreadyExistsError, PreconditionError)
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.1
"""Pause before the second attempt; doubles for each further one."""


def put_if_absent(store: ObjectStore, key: str, data: bytes, *, path: str) -> bool:
    """Put the object, or return False if the name is taken.

    ``store`` has to send each request only once: its own retries would hide the outcomes of earlier attempts. ``path``
    is for messages. Raises ``CommitOutcomeUnknownError`` if the outcome is unknown, ``UnavailableError`` if nothing was
    written.
    """
    mark = uuid.uuid4().hex
    lost_answer: Exception | None = None
    failure: Exception | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
        failure = _put(store, key, data, mark, path)
        if failure is None:
            return True
        if not was_never_sent(failure) and not isinstance(failure, _TAKEN):
            lost_answer = failure
        try:
            return obstore.get(store, key, options={"head": True}).attributes.get(_MARK) == mark
        except FileNotFoundError:
            continue
        except BaseError:
            if isinstance(failure, _TAKEN):  # possibly by our own object
                lost_answer = failure
    if lost_answer is None:
        message = f"can't create {path}: {'' if failure is None else first_line(failure)}. Nothing was done; try again"
        raise UnavailableError(message) from failure
    message = f"can't tell whether {path} was created: {first_line(lost_answer)}"
    raise CommitOutcomeUnknownError(message) from lost_answer


def _put(store: ObjectStore, key: str, data: bytes, mark: str, path: str) -> Exception | None:
    """Put once; return None on success or a transient error. Raises permanent errors."""
    try:
        obstore.put(store, key, data, mode="create", attributes={_MARK: mark}, use_multipart=False)
    except (*PERMANENT, FileNotFoundError) as error:
        raise translated("create", path, error) from error
    except BaseError as error:
        return error
    return None
