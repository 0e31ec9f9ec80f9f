"""Summaries of commits, for callers that react to each commit rather than to its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from storage_lib.errors import SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.schema.placing.partition import PartitionCodec

COMMITS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSummary:
    """One commit: its snapshot, its kind, and the partitions (column -> value) whose files it changed.

    ``delta_row_count`` is the change of the number of rows in the files, before versions of one key are merged.
    """

    snapshot_id: int
    kind: str
    commit_user: str
    time_millis: int
    delta_row_count: int
    partitions: tuple[Mapping[str, object], ...]


class CommitListing:
    """Reads the snapshots and manifests of commits."""

    def __init__(self, *, file_store: FileStore, partitions: PartitionCodec) -> None:
        self._file_store = file_store
        self._partitions = partitions

    def commits(self, *, after: int, limit: int = COMMITS_MAX) -> tuple[CommitSummary, ...]:
        """Return the first ``limit`` commits after a snapshot's id that have not expired, oldest first."""
        history = self._file_store.snapshots
        newest = history.latest_id()
        if newest is None:
            return ()
        found: list[CommitSummary] = []
        snapshot_id = max(after + 1, history.earliest_id() or 1)
        while snapshot_id <= newest and len(found) < limit:
            try:
                found.append(self._summary(history.load(snapshot_id)))
                snapshot_id += 1
            except SnapshotExpiredError:
                snapshot_id = max(snapshot_id + 1, history.earliest_id() or 1)
        return tuple(found)

    def _summary(self, snapshot: Snapshot) -> CommitSummary:
        changed = sorted({partition for partition, _ in self._file_store.scan.changed_buckets(snapshot)})
        return CommitSummary(
            snapshot_id=snapshot.id,
            kind=str(snapshot.commit_kind),
            commit_user=snapshot.commit_user,
            time_millis=snapshot.time_millis,
            delta_row_count=snapshot.delta_record_count,
            partitions=tuple(values for each in changed if (values := self._partitions.decode(each))),
        )
