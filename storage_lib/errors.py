"""Every error of the library, as a tree whose branches say what the caller should do next.

StorageError
├── RetryableError                 run the same call again
│   ├── CommitConflictError        … after re-reading: somebody else changed the same files
│   ├── LeaseLostError             … with a fresh turn: a waiter took ours over
│   ├── UnavailableError           … when the store, the broker or the turn is free again
│   └── CommitOutcomeUnknownError  … with the same identity, which finds the commit if it happened
└── PermanentError                 running it again ends the same way
    ├── InvalidInputError          mend the input, the option or the call
    ├── NotFoundError              name something that exists
    ├── AlreadyExistsError         choose another name, or ask for "if not exists"
    ├── SnapshotExpiredError       plan again from a snapshot that is still there
    ├── SqlSyntaxError             mend the statement where its message points
    ├── CorruptFileError           stop and look: a file is not what its metadata says
    ├── LogOffsetsExpiredError     start the reader again from a snapshot (``log.scan = full``)
    ├── LogRepairError             the log can't be completed from the files: reset it
    └── UntrackedCommitError       a stream would miss changes: start it again from a snapshot, or let it ignore them

What a verb that changes a table raises has an attribute ``committed`` that says whether the change has happened: True,
False, or None if that is not known (then the same call under the same identity finds out).
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
    """Base of every error that this library raises on purpose.

    ``committed`` says of a verb that changes a table whether the change has happened: with False everything is as it
    was and the call may be repeated, with True it must not be, and None is not known. It is None for errors of reading.
    """

    committed: bool | None = None


class RetryableError(StorageError):
    """The same call may succeed when it is simply run again."""


class PermanentError(StorageError):
    """The same call would fail again: something has to change first."""


class CommitConflictError(RetryableError):
    """What this commit deletes, or was made of, is no longer live; nothing of the commit was left behind."""


class LeaseLostError(RetryableError):
    """The writer's turn was taken over before its snapshot was created; nothing became visible."""


class UnavailableError(RetryableError):
    """Storage, broker or turn could not be had in time; nothing became visible."""


class CommitOutcomeUnknownError(RetryableError):
    """The answer to the commit was lost; repeat it under the same identity to find out."""


class InvalidInputError(PermanentError):
    """The input, an option or an argument is wrong; refused before anything was written."""


class NotFoundError(PermanentError):
    """A table, partition, snapshot or file that was named does not exist."""


class AlreadyExistsError(PermanentError):
    """What should be made is there already."""


class SnapshotExpiredError(PermanentError):
    """The snapshot asked for, or a file it needs, has been expired."""


class SqlSyntaxError(PermanentError):
    """The text is no statement; the message shows line, column, the line itself, and what was expected there."""


class CorruptFileError(PermanentError):
    """A file does not hold what the table's metadata says it holds."""


class LogOffsetsExpiredError(PermanentError):
    """The log no longer holds the offsets asked for (its retention has passed)."""


class LogRepairError(PermanentError):
    """Changes missing in the log can't be computed from the files any more."""


class UntrackedCommitError(PermanentError):
    """A stream has come to a commit of whose changes it is never told (``scan.on-untracked=fail``)."""


_OUTCOMES: dict[bool | None, str] = {True: "yes", False: "no", None: "unknown"}
_OUTCOME_NOTE = "Committed: "


def note_outcome(error: BaseException, *, committed: bool | None) -> None:
    """Say on an exception, of whatever class, whether the change has happened; who said it first is right.

    A note as well as an attribute: it is in every traceback, and comes along where only text does.
    """
    if "committed" not in vars(error):
        error.committed = committed  # type: ignore[attr-defined]  # foreign exceptions get it, too
        error.add_note(f"{_OUTCOME_NOTE}{_OUTCOMES[committed]}")


def outcome_in(text: str) -> bool | None:
    """What the note of ``note_outcome`` says that the text of a traceback begins with; None if there is none."""
    first = text.lstrip().partition("\n")[0].strip()
    told = {f"{_OUTCOME_NOTE}{word}": outcome for outcome, word in _OUTCOMES.items()}
    return told.get(first)
