"""Routes rows to the dynamic buckets of their partition by the hashes of their keys.

A writer loads the index of each partition that it writes to, once. Two commits must not extend the same index: keys
that another commit has added to the partition since are a conflict (``SnapshotPublisher``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.dynamic_bucket.bucket_choice import BucketLimits, PartitionIndex, assigners_of
from storage_lib.file_store.manifest.hash_index import HashIndexChange
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.schema.placing.bucketing import key_hashes, partition_codes, partition_hash
from storage_lib.schema.table_schema import BUCKET_UNAWARE

if TYPE_CHECKING:
    from storage_lib.file_store.dynamic_bucket.hash_indexes import HashIndexes
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.schema.table_schema import TableSchema

Routed = tuple[bytes, int, pa.RecordBatch, pa.Array]
"""Serialized partition, bucket, rows in arrival order, and their kinds."""


class HashBuckets:
    """Routes the rows of one task in one commit. ``is_new``: the rows replace the rows of their partitions."""

    def __init__(
        self,
        *,
        schema: TableSchema,
        limits: BucketLimits,
        indexes: HashIndexes,
        base: Snapshot | None,
        is_new: bool,
    ) -> None:
        self._schema = schema
        self._limits = limits
        self._indexes = indexes
        self._base = base
        self._is_new = is_new
        self._partitions: dict[bytes, PartitionIndex] = {}
        self.assigners: set[int] = set()
        """Numbers of the assigners whose keys this task has written."""

    def route(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[Routed]:
        """Yield the rows by partition and bucket, each pair once."""
        if not rows.num_rows:
            return
        hashes = key_hashes(rows, self._schema)
        partitions, codes = partition_codes(rows, self._schema)
        buckets = np.empty(rows.num_rows, dtype=np.int64)
        for code, partition in enumerate(partitions):
            of_partition = np.flatnonzero(codes == code) if len(partitions) > 1 else np.arange(rows.num_rows)
            assigners = assigners_of(
                partition_hash(partition, self._schema), hashes[of_partition], self._limits.assigner_count
            )
            self.assigners.update(np.unique(assigners).tolist())
            buckets[of_partition] = self._index(partition).assign(hashes[of_partition], assigners)
        yield from grouped(partitions, codes, buckets, rows, kinds)

    def indexed(self, messages: Sequence[CommitMessage]) -> tuple[CommitMessage, ...]:
        """Write this task's new index files; return its messages with them."""
        changes = self._changes()
        there = {(message.partition, message.bucket) for message in messages}
        of_indexes = tuple(
            CommitMessage(
                partition=partition,
                bucket=bucket,
                bucket_count=BUCKET_UNAWARE,
                increment=Increment(),
                hash_index=change,
            )
            for (partition, bucket), change in changes.items()
            if (partition, bucket) not in there
        )
        return (
            *(replace(each, hash_index=changes.get((each.partition, each.bucket))) for each in messages),
            *of_indexes,
        )

    def _changes(self) -> Mapping[tuple[bytes, int], HashIndexChange]:
        return {
            (partition, bucket): HashIndexChange(file=self._indexes.write(hashes), replaces_partition=self._is_new)
            for partition, index in self._partitions.items()
            for bucket, hashes in index.grown().items()
        }

    def _index(self, partition: bytes) -> PartitionIndex:
        index = self._partitions.get(partition)
        if index is None:
            known = self._indexes.of_partition(self._base, partition)
            if self._is_new:
                index = PartitionIndex({}, self._limits, earlier=known.of_buckets)
            else:
                index = PartitionIndex(known.of_buckets, self._limits, unindexed=known.unindexed)
            self._partitions[partition] = index
        return index


def grouped(
    partitions: Sequence[bytes],
    codes: np.ndarray,
    buckets: np.ndarray,
    rows: pa.RecordBatch,
    kinds: pa.Array,
) -> Iterator[Routed]:
    """Yield the rows by partition and bucket, in arrival order."""
    if not rows.num_rows:
        return
    groups = codes.astype(np.int64) * (int(buckets.max()) + 1) + buckets
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], groups[order][1:] != groups[order][:-1])))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        chosen = pa.array(order[start:end])
        first = order[start]
        yield partitions[int(codes[first])], int(buckets[first]), rows.take(chosen), kinds.take(chosen)
