"""Text of an error that a page may show."""

from __future__ import annotations

import logging
from collections.abc import Iterable

__all__ = ["shown_error"]

_log = logging.getLogger(__name__)


def shown_error(error: Exception, secrets: Iterable[str] = ()) -> str:
    """Return the text of a library error without ``secrets``; of other errors only the class name."""
    from storage_lib.errors import StorageError
    from storage_lib.schema.options.secret_text import hidden_in

    if isinstance(error, StorageError):
        return f"{type(error).__name__}: {hidden_in(str(error), secrets)}"
    _log.error("The pages failed", exc_info=error)
    return f"{type(error).__name__}; the API server's log has the details"
