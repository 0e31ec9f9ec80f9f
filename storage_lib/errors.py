"""Exceptions of the library, arranged by what the caller should do next.

    StorageError
    ├── RetryableError                 run the same call again
    │   ├── CommitConflictError        … after reading again: another writer changed the same files
    │   ├── LeaseLostError             … with a new lease: another writer took this one over
    │   ├── UnavailableError           … when the store, the broker or the lease is available again
    │   └── CommitOutcomeUnknownError  … with the same identity, which finds the commit if it happened
    └── PermanentError                 running it again fails again
        ├── InvalidInputError          correct the input, the option or the call
        ├── NotFoundError              name an object that exists
        ├── AlreadyExistsError         choose another name, or use "if not exists"
        ├── SnapshotExpiredError       plan again from a snapshot that still exists
        ├── SqlSyntaxError             correct the statement at the position in the message
        ├── CorruptFileError           investigate: a file differs from its metadata
        ├── LogOffsetsExpiredError     restart the reader from a snapshot (log.scan=full)
        ├── LogRepairError             the log can't be completed from the files: reset it
        └── UntrackedCommitError       the stream would miss changes: restart it from a snapshot, or let it ignore them

Errors of operations that change a table have an attribute ``committed``: True if the change was committed, False if
not, None if unknown (repeating the call under the same identity finds out).
"""

from __future__ import annotations

__all__ = [
    "AlreadyExistsError",
    "CommitConflictError",
    "CommitOutcomeUnknownError",
    "CorruptFileError",
    "InvalidInputError",
    "LeaseLostError",
    "LogOffsetsExpiredError",
    "LogRepairError",
    "NotFoundError",
    "PermanentError",
    "RetryableError",
    "SnapshotExpiredError",
    "SqlSyntaxError",
    "StorageError",
    "UnavailableError",
    "UntrackedCommitError",
]


class StorageError(Exception):
    """Base class of the errors that this library raises deliberately.

    ``committed`` says whether an operation that changes a table has committed: if False, nothing has changed and the
    call may be repeated; if True, it must not be repeated; None means unknown. Errors of reads have None.
    """

    committed: bool | None = None


class RetryableError(StorageError):
    """The same call may succeed when it is simply run again."""


class PermanentError(StorageError):
    """The same call would fail again until its cause is corrected."""


class CommitConflictError(RetryableError):
    """Files that this commit deletes or is based on are no longer live; nothing was committed or left behind."""


class LeaseLostError(RetryableError):
    """Another writer took over the lease before the snapshot was created; nothing became visible."""


class UnavailableError(RetryableError):
    """Storage, broker or lease was not available in time; nothing became visible."""


class CommitOutcomeUnknownError(RetryableError):
    """The response to the commit was lost; repeat it under the same identity to learn the outcome."""


class InvalidInputError(PermanentError):
    """The input, an option or an argument is invalid; nothing was written."""


class NotFoundError(PermanentError):
    """The named table, partition, snapshot or file does not exist."""


class AlreadyExistsError(PermanentError):
    """The object to be created already exists."""


class SnapshotExpiredError(PermanentError):
    """The requested snapshot, or a file it needs, has expired."""


class SqlSyntaxError(PermanentError):
    """The text is not a valid statement; the message shows line, column, the line itself and what was expected."""


class CorruptFileError(PermanentError):
    """The content of a file differs from the table's metadata."""


class LogOffsetsExpiredError(PermanentError):
    """The log no longer holds the requested offsets (its retention has passed)."""


class LogRepairError(PermanentError):
    """Changes that are missing in the log can no longer be computed from the files."""


class UntrackedCommitError(PermanentError):
    """A stream has reached a commit whose changes were not logged (``scan.on-untracked=fail``)."""


_OUTCOMES: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
_OUTCOME_NOTE = "Committed: "


def note_outcome(error: BaseException, *, committed: bool | None) -> None:
    """Record on an exception of any class whether the change was committed; the first call for an exception counts.

    Sets the attribute and adds a note, which appears in tracebacks and survives where only text is passed on.
    """
    if "committed" not in vars(error):
        error.committed = committed  # type: ignore[attr-defined]  # exceptions of other libraries as well
        error.add_note(f"{_OUTCOME_NOTE}{_OUTCOMES[committed]}")


def outcome_in(text: str) -> bool | None:
    """Parse the note of ``note_outcome`` at the start of ``text``; None if it is missing or says "unknown"."""
    first = text.lstrip().partition("\n")[0].strip()
    notes = {f"{_OUTCOME_NOTE}{word}": outcome for outcome, word in _OUTCOMES.items()}
    return notes.get(first)
