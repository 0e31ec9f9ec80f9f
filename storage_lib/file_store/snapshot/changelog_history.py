"""Long-lived changelogs: for each expired snapshot, a copy of its JSON, which names its changelog files.

``changelog/changelog-<id>``, with the hints LATEST and EARLIEST, as in Paimon (docs/format.md, 1.16). A stream
whose next snapshot has expired continues there.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from storage_lib.errors import NotFoundError, StorageError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_json import decode_snapshot, encode_snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_directory.numbered_files import NumberedFiles
from storage_lib.io.table_directory.table_paths import TablePaths


class ChangelogHistory:
    """Changelogs of one branch."""

    def __init__(self, file_io: FileIO, paths: TablePaths) -> None:
        self._file_io = file_io
        self._files = NumberedFiles(file_io, paths.changelog_directory, "changelog-", hints=True)

    def ids(self) -> list[int]:
        """Return the ids of all changelogs, ascending."""
        return self._files.ids()

    def keep(self, snapshot: Snapshot) -> None:
        """Keep the changelog of a snapshot that is about to expire; no-op if it is already kept. Durable."""
        self._files.create(snapshot.id, encode_snapshot(snapshot))

    def load(self, snapshot_id: int) -> Snapshot | None:
        """Return one changelog; None if it does not exist."""
        try:
            data = self._files.load(snapshot_id)
        except NotFoundError:
            return None
        return decode_snapshot(data, self._files.path(snapshot_id), snapshot_id=snapshot_id)

    def give_up_below(self, snapshot_id: int) -> None:
        """Move EARLIEST to this id, before older changelogs are deleted. Storage errors are ignored: it is a hint."""
        with suppress(StorageError):
            self._files.write_earliest(snapshot_id)

    def delete(self, snapshot_ids: Collection[int]) -> None:
        """Delete changelogs, after the caller has deleted their files."""
        for snapshot_id in sorted(snapshot_ids):
            self._file_io.delete(self._files.path(snapshot_id))
