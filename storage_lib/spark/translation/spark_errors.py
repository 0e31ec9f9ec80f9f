"""Brings an error of ours, raised in a Python process of Spark's, back to the caller as what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from storage_lib import errors
from storage_lib.errors import StorageError

_NOT_STARTED = "Python worker failed to connect back"
"""What Spark says when a Python process of its own needs more than 10 seconds to start, a limit that can't be set."""
_RAISED = re.compile(r"storage_lib\.errors\.(\w+): (.*)")


def storage_error_in(text: str) -> StorageError | None:
    """The last error of ours that a Python traceback inside ``text`` ends with; None if there is none.

    ``UnavailableError`` where Spark could not start a Python process in time: that passes with the machine's load.
    """
    for found in reversed(list(_RAISED.finditer(text))):
        known = getattr(errors, found[1], None)
        if isinstance(known, type) and issubclass(known, StorageError):
            error = known(found[2].strip())
            if (notes := text[found.end() :].lstrip()).startswith("Committed: "):
                errors.note_outcome(error, committed=errors.outcome_in(notes))
            return error
    if _NOT_STARTED in text:
        return errors.UnavailableError(
            "Spark's Python process did not start within 10 s: the machine is overloaded. Try again, with "
            "fewer tasks at once (spark.executor.cores, local[n]) if this recurs"
        )
    return None


@contextmanager
def storage_errors_of_spark() -> Iterator[None]:
    """Raise the storage error that Spark wrapped in place of Spark's own, which becomes its cause."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        ours = storage_error_in(str(error))
        if ours is None:
            raise
        raise ours from error
