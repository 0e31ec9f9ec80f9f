"""Compaction by the writer itself, after its commit: as a snapshot of its own, and never to the commit's loss.

Only the buckets just written to are looked at, so a small commit to a large table stays small. A writer waits where a
bucket has become crowded (``num-sorted-run.stop-trigger``): there it tries again after a lost race.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from storage_lib.errors import NotFoundError, RetryableError, SnapshotExpiredError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.io.after_commit import after_commit, warn_after_commit
from storage_lib.table.maintenance.table_care import TableCare

Buckets: TypeAlias = Collection[tuple[bytes, int]]
"""Partition and number of each."""

LOST_RACE_ERRORS = (RetryableError, SnapshotExpiredError, NotFoundError)
"""Somebody else compacted or overwrote the same buckets, and perhaps expired the files that were read."""

_ROUNDS_MAX = 10


class InlineCompaction:
    """For the writers of one table that is not ``write-only``; ``stop_trigger`` None keeps nobody waiting."""

    def __init__(self, *, table: str, file_store: FileStore, care: TableCare, stop_trigger: int | None) -> None:
        self._table = table
        self._file_store = file_store
        self._care = care
        self._stop_trigger = stop_trigger

    def compact(self, written: Snapshot, buckets: Buckets) -> None:
        """Compact what is due in the buckets that the snapshot ``written`` was written to; raises no error.

        What is crowded is compacted until it no longer is, for a few rounds.
        """
        self._try(written, buckets)
        self.relieve(buckets)

    def compact_changed(self, snapshot: Snapshot) -> None:
        """As ``compact``, of the buckets that a snapshot changed."""
        buckets = self.buckets_of(snapshot)
        if buckets:
            self.compact(snapshot, buckets)

    def buckets_of(self, snapshot: Snapshot) -> set[tuple[bytes, int]]:
        """Where a snapshot added files, or took some away; none if that is not known any more."""
        changed: set[tuple[bytes, int]] = set()
        with after_commit(f"table {self._table}: looking for buckets to compact"):
            changed = {(entry.partition, entry.bucket) for entry in self._file_store.scan.delta(snapshot)}
        return changed  # noqa: RET504  nothing where the look failed

    def relieve(self, buckets: Buckets) -> None:
        """Compact only what is crowded."""
        if self._stop_trigger is None:
            return
        for _ in range(_ROUNDS_MAX):
            with after_commit(f"table {self._table}: looking for crowded buckets"):
                latest = self._file_store.snapshots.latest()
                if latest is None:
                    return
                crowded = self._file_store.compact.crowded(latest, buckets, self._stop_trigger)
                if not crowded or not self._try(latest, crowded):
                    return

    def _try(self, snapshot: Snapshot, buckets: Buckets) -> bool:
        """Whether another round may help."""
        try:
            tasks = self._file_store.compact.plan_buckets(snapshot, buckets)
            self._care.run_and_commit(tasks)
        except LOST_RACE_ERRORS:
            return True
        except Exception as error:  # noqa: BLE001  the rows are committed, whatever this is
            warn_after_commit(
                f"table {self._table}: the rows are committed, but the compaction after it failed: {error}"
            )
            return False
        return bool(tasks)
