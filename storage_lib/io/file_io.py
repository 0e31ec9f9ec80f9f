"""All that the library asks of storage; disk, memory, object stores and HDFS answer alike (tests/io/test_file_io.py).

Paths are strings with ``/``, of remote storage whole URLs; ``TablePaths`` alone makes them. Every write is durable
when the call returns (local disk: file and directory synced). Outages raise ``UnavailableError``; a missing file
``NotFoundError``; what no repetition mends, such as missing rights, ``InvalidInputError``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """An entry of a directory; ``name`` is its last path element, ``modified_ms`` epoch milliseconds.

    Of a symbolic link, size and time are the link's own, while ``is_directory`` says what it leads to: reading follows
    links, deleting never does.
    """

    name: str
    is_directory: bool
    size_bytes: int
    modified_ms: int
    is_link: bool = False


class FileIO(Protocol):
    """Storage of whole files: nothing is ever changed in place."""

    @property
    def has_create_if_absent(self) -> bool:
        """Whether ``create_if_absent`` is the store's own to decide; without, a catalog's lock has to."""

    def read_bytes(self, path: str) -> bytes:
        """The whole file; ``NotFoundError`` if it is not there."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Make the file whole and durable, or return False if the name is taken: atomic between processes.

        Raises ``CommitOutcomeUnknownError`` if the store's answer was lost: the file may be there or not.
        """

    def write_bytes(self, path: str, data: bytes) -> None:
        """Create a file under a unique name, with its parent directories. Durable on return."""

    def replace(self, path: str, data: bytes) -> None:
        """Atomically put ``data`` in place of whatever is there (hints only; need not be durable)."""

    def list_directory(self, path: str) -> list[FileStatus]:
        """Entries of one directory, unordered; empty if it does not exist."""

    def delete(self, path: str, *, below: str | None = None) -> None:
        """Delete a file, if it exists. For a symbolic link, delete the link and not its target.

        ``below`` is a directory above the file (a table's root): if a directory between the two is a symbolic link, the
        file lies elsewhere and stays.
        """

    def delete_tree(self, path: str, *, below: str | None = None) -> None:
        """Delete a directory with everything in it, if it exists. Links and ``below`` as in ``delete``."""

    def rename_directory(self, path: str, new_path: str) -> bool:
        """Move a directory with everything in it, at once; False if the new name is taken. Parents are made.

        Raises ``NotFoundError`` if it is not there, ``InvalidInputError`` on a store that can't.
        """

    def make_directory(self, path: str) -> None:
        """Make a directory and its parents; fine if it is there. Nothing to do on object stores."""

    def open_input(self, path: str) -> pa.NativeFile:
        """For random reads (memory-mapped where that is possible); a file may not outlive its deletion meanwhile."""

    def open_output(self, path: str) -> pa.NativeFile:
        """For one sequential write of a new file. The caller closes it, then calls ``sync``.

        Raises ``AlreadyExistsError`` if the name is taken: here, or at the latest when the file is closed.
        """

    def sync(self, paths: list[str]) -> None:
        """Make files written through ``open_output`` durable, with their directories, side by side."""
