"""Deleting on a local disk without following symbolic links, also such as come while we look.

The directories between a root and what is to be deleted are opened one after the other, each relative to the one
before it and none of them through a link (``openat`` with ``O_NOFOLLOW``); the last name is unlinked relative to the
last directory. So a directory that is exchanged for a link between listing and deletion leads nowhere. The root itself
may lie behind links: where a warehouse is, is for the operator to say.
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
    """A directory on the way is a link, so that the path leads out of the root."""


def delete_file(path: str, below: str | None) -> None:
    """Unlink a file or a link, unless it is missing or lies elsewhere. Raises ``OSError``."""
    try:
        with _parent(path, below) as (directory, name):
            os.unlink(name, dir_fd=directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    except _ElsewhereError as found:
        _LOGGER.warning("%s is not deleted: %s, and nothing is deleted through a link", path, found)


def delete_directory(path: str, below: str | None) -> None:
    """Delete a tree, links in it and a link in its place as links; fine if it is gone, or elsewhere.

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
            # Exchanged for a link meanwhile, or somebody still writes to it: look again, but not for ever.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


@contextmanager
def _parent(path: str, below: str | None) -> Iterator[tuple[int, str]]:
    """The open directory that a path is in, and its name there."""
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
    """The directory ``part`` in another one, which is closed, unless it is a link."""
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
