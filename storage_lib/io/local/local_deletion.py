"""Delete on a local disk without following symbolic links, even links created during the deletion.

The directories between a root and the deleted file are opened one after the other, each relative to the one before
and never through a link (``openat`` with ``O_NOFOLLOW``); the last name is unlinked relative to the last directory.
So replacing a directory by a link between listing and deletion has no effect. The root itself may be behind links: the
operator chooses where a warehouse is.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger(__name__)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ATTEMPTS = 5


class _ElsewhereError(Exception):
    """A directory on the path is a link, so the path leaves the root."""


def delete_file(path: str, below: str | None) -> None:
    """Unlink a file or a link, unless it is missing or outside of ``below``. Raises ``OSError``."""
    try:
        with _parent(path, below) as (directory, name):
            os.unlink(name, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    except _ElsewhereError as found:
        _LOGGER.warning("%s is not deleted: %s, and nothing is deleted through a link", path, found)


def delete_directory(path: str, below: str | None) -> None:
    """Delete a tree, unless it is missing or outside of ``below``. Links are deleted, not their targets.

    Raises ``OSError``.
    """
    try:
        with _parent(path, below) as (directory, name):
            _delete_tree(name, directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    except _ElsewhereError as found:
        _LOGGER.warning("%s is not deleted: %s, and nothing is deleted through a link", path, found)


def _delete_tree(name: str, directory: int) -> None:
    for attempt in range(_ATTEMPTS):
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=directory)
            return
        try:
            shutil.rmtree(name, dir_fd=directory)
        except (OSError, NotADirectoryError):
            # Replaced by a link meanwhile, or still being written to: retry a few times.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


@contextmanager
def _parent(path: str, below: str | None) -> Iterator[tuple[int, str]]:
    """Open the directory of a path; yield its descriptor and the path's last name."""
    start, _, name = path.rstrip("/").rpartition("/")
    between: list[str] = []
    if below is not None and path.startswith(f"{below}/"):
        *between, name = path.rstrip("/").removeprefix(f"{below}/").split("/")
        start = below
    directory = os.open(start or ("/" if path.startswith("/") else "."), _DIRECTORY)
    try:
        for part in between:
            directory = _entered(directory, part)
        if name in ("", ".", ".."):
            message = f"{name!r} names no file"
            raise _ElsewhereError(message)
        yield directory, name
    finally:
        os.close(directory)


def _entered(directory: int, part: str) -> int:
    """Open ``part`` within a directory and close that directory. Raises ``_ElsewhereError`` for a link."""
    if part in ("", ".", ".."):
        message = f"its path contains {part!r}"
        raise _ElsewhereError(message)
    try:
        inner = os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        if stat.S_ISLNK(os.stat(part, dir_fd=directory, follow_symlinks=False).st_mode):
            message = f"{part} on its path is a symbolic link"
            raise _ElsewhereError(message) from None
        raise
    os.close(directory)
    return inner
