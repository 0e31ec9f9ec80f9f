"""Deletion of files that name a snapshot: its data files are deleted next, so it must no longer exist."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError, note_outcome
from storage_lib.io.file_io import FileIO


def delete_surely(file_io: FileIO, path: str, *, what: str, below: str, is_tree: bool = False) -> None:
    """Delete a file or a tree; no-op if it does not exist. ``what`` begins the message.

    Raises ``InvalidInputError`` if it still exists: nothing is deleted through a symbolic link (``local_deletion``).
    """
    if is_tree:
        file_io.delete_tree(path, below=below)
    else:
        file_io.delete(path, below=below)
    if file_io.exists(path):
        message = (
            f"{what} is not deleted: {path} is still there. A directory on its path below {below} is a symbolic link, "
            "and nothing is deleted through a link; put the directory itself in the link's place"
        )
        error = InvalidInputError(message)
        note_outcome(error, committed=False)
        raise error
