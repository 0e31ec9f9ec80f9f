"""Work after a commit, whose failure must not fail the commit.

A caller that gets an error repeats the call, and would write the rows twice. Failures after the commit point are
therefore logged, and the next writer does the remaining work: compaction, hints, the end of log transactions, the
lease, files that are no longer needed.
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
    """A ``RuntimeWarning`` that is logged where warnings are errors, for the commit is none."""
    try:
        warnings.warn(message, RuntimeWarning, stacklevel=4)
    except RuntimeWarning:
        _LOGGER.warning("%s", message)
