"""Read a file that other engines overwrite in place.

Paimon overwrites consumers, tags and hints without a rename. On a local disk such a file is empty until the new content
is written, and on some stores it is missing for a moment after a directory listing returned it. Only a file that stays
that way is damaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.io.environment import Clock

T = TypeVar("T")

_WAITS_SECONDS = (0.005, 0.02, 0.075, 0.2, 0.3, 0.4)
"""Pauses between attempts, one second in total; Paimon's own readers wait for up to two."""


def read_overwritten(clock: Clock | None, read: Callable[[], T], *, is_listed: bool = False) -> T:
    """Return what ``read`` returns; call it again for about a second while it raises ``CorruptFileError``.

    Without a ``clock`` it is called once. With ``is_listed``, a directory listing has just returned the file: then
    ``NotFoundError`` is retried as well.
    """
    if clock is None:
        return read()
    retried: tuple[type[Exception], ...] = (CorruptFileError, NotFoundError) if is_listed else (CorruptFileError,)
    for seconds in _WAITS_SECONDS:
        try:
            return read()
        except retried:
            clock.sleep(seconds)
    return read()
