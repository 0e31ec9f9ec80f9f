"""Compaction, dropping partitions, expiry and orphan cleanup. None of them needs a lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from storage_lib.errors import (
    CommitConflictError,
    CommitOutcomeUnknownError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    note_outcome,
)
from storage_lib.file_store.commit_message import CommitMessage, Committable
from storage_lib.file_store.compact import CompactionTask
from storage_lib.file_store.expire import ExpireResult
from storage_lib.file_store.orphan_files import OrphanResult
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.progress.operation import operation
from storage_lib.progress.side_by_side import run_side_by_side
from storage_lib.progress.usable_cores import usable_cores
from storage_lib.table.commit.table_commit import TableCommit
from storage_lib.table.input.partition_spec import PartitionSpecs
from storage_lib.table.protocol.identity import identity_of
from storage_lib.table.protocol.table_context import TableContext

_COMPACTIONS_AT_ONCE = 4
"""Each compaction holds a few batches of every run of its bucket in memory."""

_SIDE_BY_SIDE_BYTES_MIN = 32 * 1024 * 1024


Buckets = Iterable[tuple[Mapping[str, object], int]]
"""Buckets of a table, each given by its whole partition and its number."""


class FileMaintenance:
    """Implements the maintenance verbs of ``DynamicTable``; see their docstrings there."""

    def __init__(self, context: TableContext, *, commit: TableCommit, partitions: PartitionSpecs) -> None:
        self._table = context.name
        self._environment = context.environment
        self._file_store = context.file_store
        self._commit = commit
        self._partitions = partitions

    def compact(
        self,
        *,
        partition: Mapping[str, object] | None,
        full: bool,
        buckets: Buckets | None,
        commit_user: str | None,
        commit_identifier: int | None,
    ) -> Snapshot | None:
        """Plan, run and commit a compaction in this process."""
        user, identifier = identity_of(self._table, self._environment, commit_user, commit_identifier)
        earlier = self._commit.committed(user, identifier)
        if earlier is not None:
            return earlier
        tasks = self.plan_compaction(partition, full=full, buckets=buckets)
        return self.run_and_commit(tasks, commit_user=user, commit_identifier=identifier)

    def compact_planned(
        self, tasks: Sequence[CompactionTask], *, commit_user: str | None, commit_identifier: int | None
    ) -> Snapshot | None:
        """Run and commit the tasks of ``plan_compaction`` in this process."""
        user, identifier = identity_of(self._table, self._environment, commit_user, commit_identifier)
        earlier = self._commit.committed(user, identifier)
        return earlier or self.run_and_commit(tasks, commit_user=user, commit_identifier=identifier)

    def run_and_commit(
        self,
        tasks: Sequence[CompactionTask],
        *,
        commit_user: str | None = None,
        commit_identifier: int | None = None,
    ) -> Snapshot | None:
        """Run all tasks under the newest schema and commit them; if one fails, the files of all are deleted.

        Values that cannot be merged (a sum too large for its column) exclude only their own bucket: the others are
        committed before ``InvalidInputError`` is raised.
        """
        if not tasks:
            return None
        messages: list[CommitMessage] = []
        refused: list[InvalidInputError] = []
        # Compacting under a schema older than the tasks' files would lose columns that were added since.
        compact = self._file_store.of_newest_schema().compact

        def run(task: CompactionTask) -> None:
            try:
                message = compact.run(task)
            except InvalidInputError as error:
                if isinstance(error.__cause__, OSError):
                    raise  # a failed write to disk, not an invalid value
                refused.append(error)
                return
            if message is not None:
                messages.append(message)

        try:
            with operation("compact", self._table, total=len(tasks), unit="buckets") as buckets:
                if len(tasks) > 1 and sum(map(_size_bytes, tasks)) > _SIDE_BY_SIDE_BYTES_MIN:
                    threads_max = min(_COMPACTIONS_AT_ONCE, usable_cores())
                    run_side_by_side(run, tasks, threads_max=threads_max, done=lambda _: buckets.advance())
                else:
                    for task in tasks:
                        run(task)
                        buckets.advance()
        except BaseException:
            self.abort_compaction(messages)
            raise
        messages.sort(key=lambda message: (message.partition, message.bucket))
        committed = self.commit_compaction(messages, commit_user=commit_user, commit_identifier=commit_identifier)
        if refused:
            note_outcome(refused[0], committed=committed is not None)
            raise refused[0]
        return committed

    def plan_compaction(
        self, partition: Mapping[str, object] | None, *, full: bool, buckets: Buckets | None = None
    ) -> list[CompactionTask]:
        """Return one task per bucket with runs to merge."""
        if partition and buckets is not None:
            message = f"table {self._table}: buckets are named by their partitions; give partition or buckets, not both"
            raise InvalidInputError(message)
        snapshot = self._file_store.snapshots.latest()
        store = self._file_store.of_newest_schema()
        if buckets is not None:
            named = self._partitions.buckets(buckets)
            return [] if snapshot is None else list(store.compact.plan_buckets(snapshot, named, full=full))
        predicate = None if not partition else self._partitions.predicate(partition)
        return list(store.compact.plan(snapshot, full=full, partition_filter=predicate))

    def run_compaction(self, task: CompactionTask) -> CommitMessage | None:
        """Run one task; its files are durable but not yet part of the table."""
        return self._file_store.of_newest_schema().compact.run(task)

    def abort_compaction(self, messages: Sequence[CommitMessage]) -> None:
        """Delete files that are not part of the table; on a failure orphan cleanup removes the rest."""
        with suppress(StorageError):
            self._file_store.abort(messages)

    def commit_compaction(
        self, messages: Sequence[CommitMessage], *, commit_user: str | None, commit_identifier: int | None
    ) -> Snapshot | None:
        """Commit the outputs of tasks, except for buckets that another commit has changed, whose files are deleted.

        Each attempt has fewer buckets than the last, so a table with many writers still gets compacted.
        """
        if not messages:
            return None
        user, identifier = identity_of(self._table, self._environment, commit_user, commit_identifier)
        left = list(messages)
        try:
            while True:
                committable = Committable(commit_user=user, commit_identifier=identifier, messages=tuple(left))
                try:
                    return self._file_store.commit.commit(committable, properties_of=self._commit.carried_forward)
                except CommitConflictError:
                    lost = self._file_store.commit.lost(left)
                    if not lost or len(lost) == len(left):
                        raise
                self.abort_compaction(lost)
                left = [message for message in left if message not in lost]
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            self.abort_compaction(left)
            raise

    def drop_partitions(
        self,
        partitions: Sequence[Mapping[str, object]],
        *,
        commit_user: str,
        commit_identifier: int,
    ) -> Snapshot:
        """Delete the files of every matching partition, untracked."""
        return self._file_store.commit.overwrite(
            Committable(commit_user=commit_user, commit_identifier=commit_identifier),
            partition_filter=self._partitions.predicate_of_any(partitions),
            properties_of=self._commit.carried_forward,
        )

    def refuse_missing(self, partitions: Sequence[Mapping[str, object]]) -> None:
        """Raise ``NotFoundError`` for a spec that no partition matches."""
        self._partitions.predicate_of_any(partitions)
        latest = self._file_store.snapshots.latest()
        for spec in partitions:
            if not self._file_store.scan.entries(latest, partition_filter=self._partitions.predicate(spec)):
                message = (
                    f"table {self._table} has no partition {dict(spec)}; partitions() lists those it has. "
                    "Nothing was dropped"
                )
                raise NotFoundError(message)

    def expire_snapshots(self, *, retain_last: int, older_than_millis: int | None) -> ExpireResult:
        """Expire snapshots by count and age, except those that log repair or source offsets still need."""
        if retain_last < 1:
            message = (
                f"table {self._table}: retain_last is {retain_last}, but the newest snapshot has to stay: give 1 or "
                "more"
            )
            raise InvalidInputError(message)
        # An id rather than a count: finding it may take long, and other writers commit meanwhile.
        keep_from = self._commit.first_needed()
        retain_max = retain_last if older_than_millis is None else None
        return self._file_store.expire.expire(
            retain_min=retain_last, retain_max=retain_max, older_than_millis=older_than_millis, keep_from=keep_from
        )

    def remove_orphan_files(self, *, older_than: timedelta, dry_run: bool) -> OrphanResult:
        """Delete files of this age that no snapshot, tag or branch needs."""
        if older_than < timedelta(0):
            message = (
                f"table {self._table}: older_than is {older_than}, but no file is younger than now; give 0 or more"
            )
            raise InvalidInputError(message)
        now_ms = self._environment.clock.now_millis()
        return self._file_store.orphans.remove(
            modified_until_ms=now_ms - round(older_than.total_seconds() * 1000), dry_run=dry_run
        )


def _size_bytes(task: CompactionTask) -> int:
    return sum(file.file_size for file in task.unit.files)
