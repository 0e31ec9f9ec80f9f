"""Changelog files for commits that replace files: the changes from the old content to the new."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from storage_lib.errors import StorageError
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.store import FileStore
from storage_lib.table.changelog.snapshot_diff import FilesByPlace, Place, SnapshotDiff


class OverwriteChangelog:
    """Writes changelog files for a table with a changelog producer; compares contents as its streams saw them."""

    def __init__(self, *, file_store: FileStore, difference: SnapshotDiff) -> None:
        self._file_store = file_store
        self._difference = difference.with_old_rows()

    def messages(
        self, old: FilesByPlace, new: FilesByPlace, *, snapshot_id: int, bucket_count_of: Callable[[Place], int]
    ) -> tuple[CommitMessage, ...]:
        """Write durable changelog files; return one message per bucket with changes. An error leaves no files."""
        messages: list[CommitMessage] = []
        try:
            for place in sorted({*old, *new}):
                before, after = (self._file_store.published(files.get(place, ())) for files in (old, new))
                changes = list(self._difference.between({place: before}, {place: after}, snapshot_id=snapshot_id))
                if any(rows.num_rows for rows, _ in changes):
                    messages.append(self._file_store.changelog_message(*place, bucket_count_of(place), changes))
        except BaseException:
            with suppress(StorageError):
                self._file_store.abort(messages)
            raise
        return tuple(messages)
