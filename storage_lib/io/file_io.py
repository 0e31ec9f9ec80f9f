"""Storage interface, implemented alike for disk, memory, object stores and HDFS (tests/io/test_file_io.py).

Paths are strings with ``/``, and whole URLs for remote storage; only ``TablePaths`` builds them. Every write is
durable when the call returns (local disk: file and directory synced). Outages raise ``UnavailableError``, a missing
file ``NotFoundError``, and permanent failures such as missing permissions ``InvalidInputError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """An entry of a directory; ``name`` is its last path element, ``modified_ms`` epoch milliseconds.

    For a symbolic link, size and time are the link's own, while ``is_directory`` describes its target: reading follows
    links, deleting never does.
    """

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int
    is_link: bool = False


class FileIO(Protocol):
    """Storage of whole files, which are never changed in place."""

    @property
    def has_create_if_absent(self) -> bool:
        """Whether ``create_if_absent`` is atomic in the store itself; otherwise a catalog's lock is needed."""

    def read_bytes(self, path: str) -> bytes:
        """Return the whole file. Raises ``NotFoundError`` if it does not exist."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create a durable file atomically, or return False if the name is taken.

        Raises ``CommitOutcomeUnknownError`` if the store's answer was lost: the file may or may not exist.
        """

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file under a unique name, with its parent directories. Durable on return."""

    def replace(self, path: str, data: bytes) -> None:
        """Atomically write or overwrite a file (for hints only; need not be durable)."""

    def list_directory(self, path: str) -> list[FileStatus]:
        """Return the entries of one directory, unordered; empty if it does not exist."""

    def delete(self, path: str, *, below: str | None = None) -> None:
        """Delete a file if it exists. For a symbolic link, delete the link and not its target.

        ``below`` is a directory above the file (a table's root): if a directory between the two is a symbolic link, the
        file is outside of ``below`` and is kept.
        """

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        """Delete a directory recursively if it exists. Links and ``below`` as in ``delete``."""

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Move a directory atomically, creating parents; False if the new name is taken.

        Raises ``NotFoundError`` if it does not exist, ``InvalidInputError`` on a store that can't move directories.
        """

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents if they are missing. Does nothing on object stores."""

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a file for random reads, memory-mapped if possible. Reads may fail if the file is deleted meanwhile."""

    def open_output(self, path: str) -> pa.NativeFile:
        """Open a new file for one sequential write. The caller closes it, then calls ``sync``.

        Raises ``AlreadyExistsError`` if the name is taken, here or when the file is closed.
        """

    def sync(self, paths: list[str]) -> None:
        """Make files written through ``open_output``, and their directories, durable in parallel."""
