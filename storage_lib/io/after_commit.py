"""What is done once a commit has happened: it may fail, but never the commit.

A caller that gets an error repeats the call, and would write the rows twice. So whatever fails behind the commit point
is reported and left to the next writer, who finds it undone: compaction, hints, the end of log transactions, the turn,
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
    """Do the body, whose failure is logged as a warning: ``what`` says what was being done, and of which table.

    Interrupts pass, and say that the commit has happened.
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
