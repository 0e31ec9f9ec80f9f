"""Restore an error of this library that was raised in one of Spark's Python processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from storage_lib import errors
from storage_lib.errors import StorageError
from storage_lib.spark.translation.refused_rows import refusal_in

_NOT_STARTED = "Python worker failed to connect back"
"""Spark's message if a Python process takes longer than 10 seconds to start; this limit can't be configured."""
_MISSING_FILE = re.compile(r"\[FAILED_READ_FILE\.FILE_NOT_EXIST\] Encountered error while reading file (\S+?)\.? ")
_RAISED = re.compile(r"storage_lib\.errors\.(\w+): (.*)")


def storage_error_in(text: str) -> StorageError | None:
    """Return the last error of this library in a traceback inside ``text``, or a row's refusal; None without one.

    ``UnavailableError`` if Spark could not start a Python process in time, because a retry may succeed.
    """
    refusal = refusal_in(text)
    if refusal is not None:
        return refusal
    for found in reversed(list(_RAISED.finditer(text))):
        known = getattr(errors, found[1], None)
        if isinstance(known, type) and issubclass(known, StorageError):
            error = known(found[2].strip())
            if (notes := text[found.end() :].lstrip()).startswith("Committed: "):
                errors.note_outcome(error, committed=errors.outcome_in(notes))
            return error
    missing = _MISSING_FILE.search(text)
    if missing is not None:
        return errors.SnapshotExpiredError(
            f"data file {missing[1]} was deleted while a query read it: its snapshot has expired, or the table was "
            "dropped. Run the query again; retain snapshots for longer than queries take (snapshot.time-retained)"
        )
    if _NOT_STARTED in text:
        return errors.UnavailableError(
            "Spark's Python process did not start within 10 s: the machine is overloaded. Try again, with "
            "fewer tasks at once (spark.executor.cores, local[n]) if this recurs"
        )
    return None


@contextmanager
def storage_errors_of_spark() -> Iterator[None]:
    """Replace Spark's exceptions from the body by the storage error that they wrap; Spark's becomes the cause."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        ours = storage_error_in(str(error))
        if ours is None:
            raise
        raise ours from error
