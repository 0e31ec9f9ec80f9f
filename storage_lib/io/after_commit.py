"""Work after a commit, whose failure must not fail the commit.

A caller that gets an error retries and would write the rows twice. So failures after the commit point are logged, and
the next writer does the remaining work: compaction, hints, ending log transactions, releasing the lease, deleting
files that are no longer needed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from storage_lib.errors import note_outcome

_LOGGER = logging.getLogger(__name__)


@contextmanager
def after_commit(what: str) -> Iterator[None]:
    """Log an exception of the body as a warning; ``what`` names the operation and its table.

    Interrupts propagate, marked as committed.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001  the commit has happened, whatever this is
        _LOGGER.warning("the commit has happened, but %s failed: %s: %s", what, type(error).__name__, error)
    except BaseException as interrupt:
        note_outcome(interrupt, committed=True)
        raise


def warn_after_commit(message: str) -> None:
    """Issue a ``RuntimeWarning``; log it where warnings are errors, because the commit must not fail."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    except RuntimeWarning:
        _LOGGER.warning("%s", message)
