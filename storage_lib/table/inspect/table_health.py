"""Health figures of a table for monitoring. Reads metadata of the files only, not the log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from storage_lib.errors import SnapshotExpiredError, StorageError
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.table.inspect.rejected_records import RejectedRecords

_SNAPSHOTS_SEARCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth:
    """Health figures of one table. Times are epoch milliseconds; None: not in the kept snapshots.

    ``row_count`` counts versions of rows before they are merged. ``runs_max`` is the most sorted runs that a reader of
    one bucket has to merge, ``bucket_count`` the buckets of all partitions that have files, ``snapshot_count`` the
    snapshots that have not expired. ``rejected_count`` counts the rejected records of sources.
    ``view_snapshot_id`` is the newest snapshot that the table's Iceberg view shows: 0 if it shows none.
    ``view_waiting_count`` newer ones have rows that no reader of Iceberg can merge: they wait for a compaction.
    ``view_problem`` says what is wrong with the view apart from missing snapshots, so after a crash in ALTER TABLE, or
    why its state is unknown.
    """

    snapshot_id: int | None = None
    commit_kind: str | None = None
    commit_millis: int | None = None
    change_millis: int | None = None
    compaction_millis: int | None = None
    file_count: int = 0
    row_count: int = 0
    size_bytes: int = 0
    partition_count: int = 0
    bucket_count: int = 0
    runs_max: int = 0
    snapshot_count: int = 0
    rejected_count: int = 0
    view_snapshot_id: int | None = None
    view_waiting_count: int = 0
    view_problem: str | None = None

    @property
    def view_lag(self) -> int | None:
        """Number of snapshots that the table's Iceberg view does not show yet; None for a table without one.

        Those that wait for a compaction do not count.
        """
        if self.view_snapshot_id is None:
            return None
        return max(0, (self.snapshot_id or 0) - self.view_snapshot_id - self.view_waiting_count)


class TableHealthCheck:
    """Checks one table repeatedly; a check without a new commit reads only the ids of snapshots."""

    def __init__(self, file_store: FileStore, rejected: RejectedRecords) -> None:
        self._file_store = file_store
        self._rejected = rejected
        self._last = TableHealth()

    def check(self) -> TableHealth:
        """Return the current figures."""
        history = self._file_store.snapshots
        newest_id = history.latest_id()
        if newest_id is None:
            return self._with_view(TableHealth())
        earliest_id = history.earliest_id() or newest_id
        is_new = newest_id != self._last.snapshot_id
        if is_new:
            self._last = self._of(history.load(newest_id), earliest_id)
        is_behind = self._last.view_snapshot_id not in (None, newest_id)
        if is_new or is_behind or self._last.view_problem is not None:
            self._last = self._with_view(self._last)
        # Expiry creates no snapshot, so this changes independently.
        return replace(self._last, snapshot_count=newest_id - earliest_id + 1)

    def _with_view(self, health: TableHealth) -> TableHealth:
        """Return the figures with those of the view that the newest schema asks for.

        A view that can't be read takes nothing from the other figures.
        """
        try:
            view = self._file_store.newest_view()
            if view is None:
                return replace(health, view_snapshot_id=None, view_waiting_count=0, view_problem=None)
            shown = None if health.snapshot_id is None else view.shown() or 0
            return replace(
                health, view_snapshot_id=shown, view_waiting_count=view.waiting(), view_problem=view.problem()
            )
        except StorageError as error:
            return replace(health, view_problem=f"its state is unknown: {error}")

    def _of(self, snapshot: Snapshot, earliest_id: int) -> TableHealth:
        changed, compacted = self._last_times(snapshot, earliest_id)
        entries = self._file_store.scan.entries(snapshot)
        runs = runs_by_bucket(entries)
        return TableHealth(
            snapshot_id=snapshot.id,
            commit_kind=str(snapshot.commit_kind),
            commit_millis=snapshot.time_millis,
            change_millis=changed or self._last.change_millis,
            compaction_millis=compacted or self._last.compaction_millis,
            file_count=len(entries),
            row_count=sum(entry.file.row_count for entry in entries),
            size_bytes=sum(entry.file.file_size for entry in entries),
            partition_count=len({entry.partition for entry in entries}),
            bucket_count=len(runs),
            runs_max=max(runs.values(), default=0),
            rejected_count=self._rejected.count(snapshot),
            view_snapshot_id=self._last.view_snapshot_id,
            view_waiting_count=self._last.view_waiting_count,
            view_problem=self._last.view_problem,
        )

    def _last_times(self, newest: Snapshot, earliest_id: int) -> tuple[int | None, int | None]:
        """Return the times of the last commit that changed rows and of the last compaction since the previous check."""
        changed, compacted = None, None
        first = max(earliest_id, (self._last.snapshot_id or 0) + 1, newest.id - _SNAPSHOTS_SEARCHED)
        for snapshot_id in range(newest.id, first - 1, -1):
            try:
                snapshot = newest if snapshot_id == newest.id else self._file_store.snapshots.load(snapshot_id)
            except SnapshotExpiredError:
                break
            if changed is None and snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
                changed = snapshot.time_millis
            if compacted is None and snapshot.commit_kind is CommitKind.COMPACT:
                compacted = snapshot.time_millis
            if changed is not None and compacted is not None:
                break
        return changed, compacted


def runs_by_bucket(entries: list[ManifestEntry]) -> Counter[tuple[bytes, int]]:
    """Count sorted runs by (partition, bucket): one per file in level 0, one for every other level."""
    seen = {
        (entry.partition, entry.bucket, entry.file.level, entry.file.file_name if entry.file.level == 0 else "")
        for entry in entries
    }
    return Counter((partition, bucket) for partition, bucket, _, _ in seen)
