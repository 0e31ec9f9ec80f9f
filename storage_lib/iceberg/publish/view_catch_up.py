"""Publishes the snapshots that a view lacks, in their order, upon the newest one that it shows.

A process that crashed, failed or was slower than others leaves some. If rows have to be merged, snapshots that no
compaction has merged are left out; a note (``waiting``) says up to which one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from storage_lib.errors import (
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    UnavailableError,
)
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.encode.table_metadata import ViewMetadata
from storage_lib.iceberg.publish.view_content import ViewContents
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.iceberg.publish.view_publisher import ViewPublisher, identity_of, waits_for_merges
from storage_lib.io.environment import Clock
from storage_lib.schema.options.table_options import IcebergVersion

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 100


class ViewCatchUp:
    """Brings the view of one table up to date. Thread-safe."""

    def __init__(
        self,
        store: FileStore,
        directory: ViewDirectory,
        contents: ViewContents,
        publisher: ViewPublisher,
        *,
        table: str,
        location: str,
        version: IcebergVersion,
        clock: Clock,
    ) -> None:
        """``location`` is the table's directory."""
        self._store = store
        self._directory = directory
        self._contents = contents
        self._publisher = publisher
        self._table = table
        self._location = location
        self._version = version
        self._clock = clock

    def catch_up(self) -> int | None:
        """Publish the snapshots that are missing; return the newest one that the view shows, None if it shows none.

        Snapshots that have expired are left out, those with files that Iceberg can't show, and those whose rows have to
        be merged. A view that does not exist begins with the newest of the others. Raises ``StorageError``; what was
        published before stays.
        """
        published: ViewMetadata | None = None
        for _ in range(_ATTEMPTS):
            latest_id = self._store.snapshots.latest_id()
            if published is not None and published.snapshot_id == latest_id:
                return latest_id
            before = self._base()
            if latest_id is None:
                return self._begin_empty(before)
            if before is not None and before.snapshot_id >= latest_id:
                return before.snapshot_id
            waits_up_to = self._waits_up_to()
            if waits_up_to == latest_id:
                return None if before is None else before.snapshot_id
            for snapshot in self._missing(before, waits_up_to, latest_id):
                before, goes_on = self._next(before, snapshot, is_last=snapshot.id == latest_id)
                published = before if goes_on else None
                if not goes_on:
                    break
        message = (
            f"table {self._table}: other processes commit and publish faster than its Iceberg view is written here; "
            "the next commit continues"
        )
        raise UnavailableError(message)

    def waiting(self) -> int:
        """Return how many snapshots after the newest one in the view wait for a compaction."""
        if not waits_for_merges(self._store):
            return 0
        newest = self._directory.newest()
        return max(0, self._waits_up_to() - (0 if newest is None else newest.snapshot_id))

    def _base(self) -> ViewMetadata | None:
        """Return the newest metadata upon which to build; None to begin with the newest snapshot."""
        newest = self._directory.newest()
        if newest is None:
            return None
        if (newest.location, newest.version) != (self._location, self._version):
            reason = "has moved" if newest.version is self._version else "has another format version"
            _LOGGER.info("table %s %s: its Iceberg view begins again", self._table, reason)
            return None
        if newest.snapshot_id == 0:
            return newest
        there = self._store.snapshots.load_expired(newest.snapshot_id)
        earliest_id = self._store.snapshots.earliest_id()
        if there is None and earliest_id is not None and newest.snapshot_id < earliest_id:
            return newest
        if there is not None and identity_of(there) == newest.identity:
            return newest
        _LOGGER.warning(
            "table %s was rolled back by another engine: its Iceberg view begins again with the newest snapshot",
            self._table,
        )
        self._directory.delete_above(self._store.snapshots.latest_id() or 0)
        return None

    def _begin_empty(self, before: ViewMetadata | None) -> int:
        if before is None:
            self._directory.create(self._publisher.empty(self._store, self._clock.now_millis()), self._store.schema)
        return 0

    def _waits_up_to(self) -> int:
        """Return the newest snapshot that is known to wait for a compaction, with all after the shown one; 0 if none.

        A note about a snapshot that another engine has rolled back is ignored.
        """
        noted = self._directory.waiting() if waits_for_merges(self._store) else None
        if noted is None or noted[0] > (self._store.snapshots.latest_id() or 0):
            return 0
        there = self._store.snapshots.load_expired(noted[0])
        return noted[0] if there is None or identity_of(there) == noted[1] else 0

    def _first_to_show(self, waits_up_to: int, latest_id: int) -> int:
        """Return the newest snapshot that a new view can show; the newest of all if none can be shown."""
        if waits_for_merges(self._store):
            earliest_id = self._store.snapshots.earliest_id() or latest_id
            for snapshot_id in range(latest_id, max(earliest_id - 1, waits_up_to), -1):
                try:
                    snapshot = self._store.snapshots.load(snapshot_id)
                except SnapshotExpiredError:
                    break
                if self._publisher.can_show(self._store_of(snapshot), snapshot):
                    return snapshot_id
        return latest_id

    def _missing(self, before: ViewMetadata | None, waits_up_to: int, latest_id: int) -> Iterator[Snapshot]:
        """Yield the snapshots to publish, the last one in any case."""
        if before is not None:
            first = max(before.snapshot_id, waits_up_to) + 1
        else:
            first = self._first_to_show(waits_up_to, latest_id)
        for snapshot_id in range(max(first, self._store.snapshots.earliest_id() or first), latest_id + 1):
            try:
                yield self._store.snapshots.load(snapshot_id)
            except SnapshotExpiredError:
                continue

    def _next(
        self, before: ViewMetadata | None, snapshot: Snapshot, *, is_last: bool
    ) -> tuple[ViewMetadata | None, bool]:
        """Publish one snapshot; return the newest metadata, and False to look again which snapshots are missing."""
        store = self._store_of(snapshot)
        if not self._publisher.can_show(store, snapshot):
            if is_last:
                self._directory.note_waiting(snapshot.id, identity_of(snapshot))
            return before, True
        try:
            published = self._publisher.publish(store, before, snapshot)
        except InvalidInputError as error:
            if is_last:
                raise
            _LOGGER.warning("snapshot %s is left out of the Iceberg view: %s", snapshot.id, error)
            return before, True
        except (NotFoundError, CorruptFileError) as error:
            if before is None or self._is_whole(before):
                raise
            _LOGGER.warning("the Iceberg view of table %s is damaged, and begins again: %s", self._table, error)
            return self._publisher.publish(store, None, snapshot), False
        if published is not None and waits_for_merges(store) and self._has_expired(snapshot):
            # The expiry has held the snapshot that was shown before, and newer ones that can be shown may not come.
            self._directory.withdraw(snapshot.id, 0 if before is None else before.snapshot_id)
            return None, False
        # None: another process is publishing as well.
        return published, published is not None

    def _has_expired(self, snapshot: Snapshot) -> bool:
        return snapshot.id < (self._store.snapshots.earliest_id() or 0) and not any(
            tag.snapshot.id == snapshot.id for tag in self._store.tags.load_all()
        )

    def _is_whole(self, metadata: ViewMetadata) -> bool:
        """Return whether the manifests of the newest snapshot can be read; otherwise others have deleted some."""
        try:
            if metadata.current is not None:
                self._contents.read(metadata.current.manifest_list)
        except (NotFoundError, CorruptFileError):
            return False
        return True

    def _store_of(self, snapshot: Snapshot) -> FileStore:
        if snapshot.schema_id == self._store.schema.id:
            return self._store
        return self._store.of_schema(snapshot.schema_id)
