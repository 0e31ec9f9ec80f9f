"""Merges the sorted runs of buckets: chooses what is due, carries it out, hands out commit messages."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.compaction.compaction_strategy import CompactionStrategy, CompactionUnit
from storage_lib.file_store.merge_tree.compaction.compactor import Compactor
from storage_lib.file_store.merge_tree.compaction.full_compaction import FullCompaction
from storage_lib.file_store.merge_tree.levels import levels_of
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.io.file_io import FileIO
from storage_lib.schema.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionTask:
    """What to compact in one bucket; picklable, so that each task may run on another machine."""

    partition: bytes
    bucket: int
    bucket_count: int
    unit: CompactionUnit


class FileStoreCompact:
    """Plans on one machine, runs anywhere, is committed like any other change; losing a race costs the work only."""

    def __init__(
        self,
        *,
        scan: FileStoreScan,
        key_value: KeyValueSchema,
        strategy: CompactionStrategy,
        level_count: int,
        new_compactor: Callable[[bytes, int], Compactor],
        file_io: FileIO,
    ) -> None:
        self._scan = scan
        self._key_value = key_value
        self._strategy = strategy
        self._level_count = level_count
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
        """The buckets where something is due by the table's strategy, or with ``full`` everything not yet one run."""
        strategy = FullCompaction() if full else self._strategy
        plan = self._scan.plan(snapshot, partition_filter=partition_filter, buckets=buckets)
        tasks = []
        counts = {(entry.partition, entry.bucket): entry.total_buckets for entry in plan.entries}
        for partition, bucket, files in plan.by_bucket():
            levels = levels_of(files, level_count=self._level_count, comparable_key=self._key_value.comparable_key)
            unit = strategy.pick(levels)
            if unit is not None:
                tasks.append(
                    CompactionTask(
                        partition=partition, bucket=bucket, bucket_count=counts[partition, bucket], unit=unit
                    )
                )
        return tuple(tasks)

    def run(self, task: CompactionTask) -> CommitMessage | None:
        """Carry one task out; its files are durable when this returns. None if all files may stay as they are."""
        compactor = self._new_compactor(task.partition, task.bucket)
        increment = compactor.compact(task.unit)
        self._file_io.sync(compactor.take_unsynced())
        if increment.is_empty:
            return None
        return CommitMessage(
            partition=task.partition, bucket=task.bucket, bucket_count=task.bucket_count, increment=increment
        )
