"""Compaction of buckets: plan tasks, run them, and return commit messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.kind.table_kind import BucketCompactor, TableKind
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionUnit
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.schema.filter.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """Compaction task for one bucket; picklable, so that each task may run on another machine."""

    partition: bytes
    bucket: int
    bucket_count: int
    unit: CompactionUnit


class FileStoreCompact:
    """Plans on one machine, runs tasks on any, commits like any other change; a lost race costs only the work."""

    def __init__(
        self,
        *,
        scan: FileStoreScan,
        kind: TableKind,
        new_compactor: Callable[[bytes, int], BucketCompactor],
        file_io: FileIO,
    ) -> None:
        self._scan = scan
        self._kind = kind
        self._new_compactor = new_compactor
        self._file_io = file_io

    def plan(
        self,
        snapshot: Snapshot | None,
        *,
        full: bool = False,
        partition_filter: Predicate | None = None,
        buckets: Collection[int] | None = None,
    ) -> tuple[CompactionTask, ...]:
        """Plan the buckets that need compaction by the table's options; with ``full``, all that can be compacted."""
        plan = self._scan.plan(snapshot, partition_filter=partition_filter, buckets=buckets)
        counts = {(entry.partition, entry.bucket): entry.total_buckets for entry in plan.entries}
        return tuple(
            task
            for partition, bucket, files in plan.by_bucket()
            for task in self._tasks(partition, bucket, counts[partition, bucket], files, full=full)
        )

    def plan_buckets(
        self, snapshot: Snapshot, buckets: Collection[tuple[bytes, int]], *, full: bool = False
    ) -> tuple[CompactionTask, ...]:
        """Same as ``plan`` for some (partition, bucket) pairs; the cost depends on their files, not on the table's."""
        live = self._scan.live_files(snapshot, partitions={partition for partition, _ in buckets})
        tasks: list[CompactionTask] = []
        for partition, bucket in sorted(buckets):
            entries = list(live.of(partition, bucket))
            if entries:
                files = [entry.file for entry in entries]
                tasks += self._tasks(partition, bucket, entries[0].total_buckets, files, full=full)
        return tuple(tasks)

    def crowded(
        self, snapshot: Snapshot, buckets: Collection[tuple[bytes, int]], run_count: int
    ) -> set[tuple[bytes, int]]:
        """Return the buckets that have at least ``run_count`` sorted runs."""
        live = self._scan.live_files(snapshot, partitions={partition for partition, _ in buckets})
        return {
            (partition, bucket)
            for partition, bucket in buckets
            if _run_count(entry.file for entry in live.of(partition, bucket)) >= run_count
        }

    def run(self, task: CompactionTask) -> CommitMessage | None:
        """Run one task; its files are durable when this returns. None if no file has to change."""
        compactor = self._new_compactor(task.partition, task.bucket)
        increment = compactor.compact(task.unit)
        self._file_io.sync(compactor.take_unsynced())
        if increment.is_empty:
            return None
        return CommitMessage(
            partition=task.partition, bucket=task.bucket, bucket_count=task.bucket_count, increment=increment
        )

    def _tasks(
        self, partition: bytes, bucket: int, bucket_count: int, files: Sequence[DataFileMeta], *, full: bool = False
    ) -> Iterator[CompactionTask]:
        for unit in self._kind.compaction_units(files, full=full):
            yield CompactionTask(partition=partition, bucket=bucket, bucket_count=bucket_count, unit=unit)


def _run_count(files: Iterable[DataFileMeta]) -> int:
    levels = [file.level for file in files]
    return levels.count(0) + len(set(levels) - {0})
