"""Restore an error of this library that was raised in one of Spark's Python processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from storage_lib import errors
from storage_lib.errors import StorageError
from storage_lib.spark.types.refused_rows import refusal_in

_LATE_START = re.compile(
    "Python worker failed to connect back|waiting for the Python worker to connect back|Python daemon failed to launch"
)
"""Spark's messages if a Python process takes longer than 10 s to start, or that of a task 60 s, or it can't be forked.

These limits can't be configured.
"""
_OVERLOADED = (
    "Spark's Python process did not start within 10 s: the machine is overloaded. Try again, with "
    "fewer tasks at once (spark.executor.cores, local[n]) if this recurs"
)
_UNREAD_FILE = re.compile(r"\[FAILED_READ_FILE\.(?P<why>\w+)\] Encountered error while reading file (?P<url>\S+?)\.?\s")
_MISSING = "FILE_NOT_EXIST"
_CAUSE = re.compile(r"^Caused by: (?P<of>[\w.$]+)(?:: (?P<text>.*))?$", re.MULTILINE)
_OF_THE_STORE = re.compile(
    r"java\.net\.|\.InterruptedIOException|\.AccessDeniedException|ssl\.|\.http\.|awssdk|\.s3a\.|\.azure"
    r"|hadoop\.(?:net|ipc|hdfs|security)\."
)
"""Packages and classes of exceptions that a store raises, as opposed to a decoder."""
_RAISED = re.compile(r"storage_lib\.errors\.(\w+): (.*)")


def storage_error_in(text: str) -> StorageError | None:
    """Return the last error of this library in a traceback inside ``text``, or a row's refusal; None without one.

    ``UnavailableError`` if Spark could not start a Python process in time, because a retry may succeed. For a data file
    that Spark's own reader could not read, the error names the file and the reason.
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
    unread = _UNREAD_FILE.search(text)
    if unread is not None:
        return _of_unread_file(unread, text)
    if _LATE_START.search(text) is not None:
        return errors.UnavailableError(_OVERLOADED)
    return None


def is_late_start(text: str) -> bool:
    """Return whether Spark's exception says that a Python process did not start in time, and nothing else of ours."""
    return str(storage_error_in(text)) == _OVERLOADED


def _of_unread_file(unread: re.Match[str], text: str) -> StorageError:
    file = unquote(unread["url"])
    if unread["why"] == _MISSING:
        return errors.SnapshotExpiredError(
            f"data file {file} was deleted while a query read it: its snapshot has expired, or the table was "
            "dropped. Run the query again; retain snapshots for longer than queries take (snapshot.time-retained)"
        )
    causes = list(_CAUSE.finditer(text, unread.end()))
    reason = "Spark gives no reason" if not causes else causes[0]["text"] or causes[0]["of"]
    if any(_OF_THE_STORE.search(each["of"]) for each in causes):
        return errors.UnavailableError(f"data file {file} could not be read from its store: {reason}")
    return errors.CorruptFileError(
        f"data file {file} can't be decoded: {reason}. Restore the file from a copy, or roll back to a snapshot or tag "
        "without it"
    )


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
