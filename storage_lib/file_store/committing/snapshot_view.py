"""A view of the table in another format, which follows its snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.file_io import FileStatus


class SnapshotView(Protocol):
    """Follows the snapshots of one table. Its files are its own; of the table's it only names some."""

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot that was just created, and those before it that are missing.

        Never raises an ``Exception``: the snapshot is committed, whatever happens. What failed is logged, and the next
        commit repeats it.
        """

    def shown(self) -> int | None:
        """Return the id of the newest snapshot that the view shows, 0 for an empty table; None if there is no view."""

    def waiting(self) -> int:
        """Return how many of the snapshots after the newest one in the view it can't show until they are compacted."""

    def problem(self) -> str | None:
        """Return what is wrong with the view apart from missing snapshots; None if it is as the newest schema asks for.

        So after a crash between a change of the schema and that of the view.
        """

    def hold(self, first_retained: int) -> None:
        """Protect the snapshot that the view shows from an expiry of those below ``first_retained``, if it has to stay.

        Stops protecting those that the view showed before. Raises ``StorageError``.
        """

    def drop_expired(self) -> None:
        """Drop expired snapshots that no tag keeps, before files that only they need are deleted.

        Raises ``StorageError`` if the view would still name such files.
        """

    def orphans(self) -> Iterator[tuple[str, FileStatus]]:
        """Yield the view's files that no snapshot of it needs, with their paths; of any age."""

    def delete(self, path: str) -> None:
        """Delete a file that ``orphans`` yielded."""
