"""Compaction by a writer after its commit, in a separate snapshot; a failure does not affect the commit.

Only buckets that the commit changed are considered, so the work is proportional to the commit, not to the table. A
writer compacts buckets with ``num-sorted-run.stop-trigger`` sorted runs before it continues, and retries after a lost
race. It also retries if other engines see rows only after compaction (``TableOptions.compacts_at_commit``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from storage_lib.errors import NotFoundError, RetryableError, SnapshotExpiredError, note_outcome
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.after_commit import after_commit, warn_after_commit
from storage_lib.table.maintenance.file_maintenance import FileMaintenance
from storage_lib.table.protocol.table_context import TableContext
from storage_lib.table.protocol.write_context import TableCommitMessage

Buckets: TypeAlias = Collection[tuple[bytes, int]]
"""Buckets by partition (serialized) and number."""

LOST_RACE_ERRORS = (RetryableError, SnapshotExpiredError, NotFoundError)
"""Another process compacted or overwrote the same buckets, and may have expired the files that were read."""

_ROUNDS_MAX = 10


@dataclass(frozen=True, slots=True)
class _Round:
    """Result of one round. ``was_raced``: another commit prevented the compaction of some buckets, or may have."""

    may_help_again: bool
    was_raced: bool


class PostCommitCompaction:
    """Compacts for the writers of one table; does nothing for a ``write-only`` table.

    No method raises a ``StorageError``: the rows are committed. After a lost race the result is discarded; any other
    failure is a ``RuntimeWarning``.
    """

    def __init__(self, context: TableContext, care: FileMaintenance) -> None:
        self._table = context.name
        self._is_off = context.options.write_only
        self._file_store = context.file_store
        self._care = care
        self._must_compact = context.options.compacts_at_commit
        self._stop_trigger = context.options.num_sorted_run_stop_trigger

    def compact_written(
        self, written: Snapshot, messages: Sequence[TableCommitMessage], *, only_crowded: bool = False
    ) -> None:
        """Run due compactions of a commit's buckets, or with ``only_crowded`` only of those at their stop trigger."""
        if self._is_off or not written.has_files:
            return
        buckets = {(each.partition, each.bucket) for message in messages for each in message.files}
        # A tracked overwrite also writes deletions to buckets for which no task has files.
        buckets |= self._buckets_of(written)
        if only_crowded:
            self._relieve(buckets)
        elif buckets:
            self._compact(written, buckets)

    def compact_changed(self, snapshot: Snapshot) -> None:
        """Run due compactions of the buckets that a snapshot changed."""
        if self._is_off or not snapshot.has_files:
            return
        buckets = self._buckets_of(snapshot)
        if buckets:
            self._compact(snapshot, buckets)

    def _compact(self, written: Snapshot, buckets: Buckets) -> None:
        """Run due compactions, then compact crowded buckets, in at most ``_ROUNDS_MAX`` rounds."""
        done = self._try(written, buckets)
        if self._must_compact:
            self._finish(done, buckets)
        self._relieve(buckets)

    def _finish(self, done: _Round, buckets: Buckets) -> None:
        """Repeat compactions that other commits prevented in the first round.

        If the compaction of an older commit ends first, it replaces files of this one, which is then discarded; the
        files of this commit would stay invisible to other engines until the next write to the bucket.
        """
        for _ in range(_ROUNDS_MAX):
            if not done.was_raced:
                return
            latest: Snapshot | None = None
            with after_commit(f"table {self._table}: looking for files that are still to be compacted"):
                latest = self._file_store.snapshots.latest()
            if latest is None:
                return
            done = self._try(latest, buckets)

    def _buckets_of(self, snapshot: Snapshot) -> set[tuple[bytes, int]]:
        """Return the buckets in which a snapshot added or removed files; none if the snapshot has expired."""
        changed: set[tuple[bytes, int]] = set()
        with after_commit(f"table {self._table}: looking for buckets to compact"):
            changed = {(entry.partition, entry.bucket) for entry in self._file_store.scan.delta(snapshot)}
        return changed  # noqa: RET504  nothing where the look failed

    def _relieve(self, buckets: Buckets) -> None:
        """Compact the buckets that have reached the stop trigger."""
        if self._stop_trigger is None:
            return
        for _ in range(_ROUNDS_MAX):
            with after_commit(f"table {self._table}: looking for crowded buckets"):
                latest = self._file_store.snapshots.latest()
                if latest is None:
                    return
                crowded = self._file_store.compact.crowded(latest, buckets, self._stop_trigger)
                if not crowded or not self._try(latest, crowded).may_help_again:
                    return

    def _try(self, snapshot: Snapshot, buckets: Buckets) -> _Round:
        try:
            tasks = self._file_store.compact.plan_buckets(snapshot, buckets)
            if not tasks:
                return _Round(may_help_again=False, was_raced=False)
            made = self._care.run_and_commit(tasks)
        except LOST_RACE_ERRORS:
            return _Round(may_help_again=True, was_raced=True)
        except Exception as error:  # noqa: BLE001  the rows are committed in any case
            warn_after_commit(
                f"table {self._table}: the rows are committed, but the compaction after it failed: {error}"
            )
            return _Round(may_help_again=False, was_raced=False)
        except BaseException as interrupt:
            note_outcome(interrupt, committed=True)
            raise
        # A commit in between may have replaced the files of some of the buckets.
        return _Round(may_help_again=True, was_raced=made is not None and made.id != snapshot.id + 1)
