"""Files and directories that only their owner may read, from the moment they are created."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO
from uuid import uuid4

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["make_private_directory", "open_private", "write_private"]

OF_OTHERS = 0o077


def make_private_directory(directory: Path, *, exist_ok: bool = True) -> None:
    """Create the directory, and every missing one above it, with mode 0700.

    An existing directory of this user is restricted to its owner: an earlier version created it with an open mode.
    Raises FileExistsError if the directory exists, unless ``exist_ok``.
    """
    if not directory.parent.exists():
        make_private_directory(directory.parent)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not exist_ok or not directory.is_dir():
            raise
        held = directory.stat()
        if held.st_mode & OF_OTHERS and held.st_uid == os.geteuid():
            directory.chmod(held.st_mode & 0o700)


def open_private(path: Path) -> BinaryIO:
    """Open a new file with mode 0600 for writing; replaces an existing one."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")


def write_private(path: Path, text: str) -> None:
    """Replace the file atomically with one of mode 0600 that contains ``text``, also after a crash of the machine."""
    # Two processes may write at once, such as a task and the former try of it.
    new = path.with_name(f".{path.name}.{uuid4().hex}.new")
    try:
        with open_private(new) as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
