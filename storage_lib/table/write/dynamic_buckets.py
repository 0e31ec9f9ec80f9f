"""Routing of a task's rows to dynamic buckets: by hash indexes, or by the current location of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.dynamic_bucket.bucket_choice import BucketLimits, assigners_of
from storage_lib.schema.placing.bucketing import key_hashes, partition_codes, partition_hash
from storage_lib.table.write.hash_buckets import HashBuckets, Routed
from storage_lib.table.write.key_buckets import KeyBuckets

if TYPE_CHECKING:
    from storage_lib.file_store.commit_message import CommitMessage
    from storage_lib.file_store.snapshot.snapshot import Snapshot
    from storage_lib.file_store.store import FileStore
    from storage_lib.schema.options.table_options import TableOptions
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.protocol.write_context import WriteContext
    from storage_lib.table.read.point_lookup import PointLookup


class DynamicBuckets(Protocol):
    """Routes the rows of one task in one commit to their buckets."""

    assigners: set[int]

    def route(self, rows: pa.RecordBatch, kinds: pa.Array) -> Iterator[Routed]:
        """Yield the rows to write by partition and bucket, each pair once."""

    def indexed(self, messages: Sequence[CommitMessage]) -> tuple[CommitMessage, ...]:
        """Return the task's messages with its index changes; call it once, at the end."""


def limits_of(options: TableOptions) -> BucketLimits:
    """Return the limits that the table's options set for its dynamic buckets."""
    buckets_max = None if options.dynamic_bucket_max_buckets < 0 else options.dynamic_bucket_max_buckets
    wanted = (options.dynamic_bucket_initial_buckets, options.dynamic_bucket_assigner_parallelism, buckets_max)
    given = [each for each in wanted[:2] if each is not None]
    return BucketLimits(
        target_keys=options.dynamic_bucket_target_row_num,
        buckets_max=buckets_max,
        assigner_count=min(each for each in (*given, buckets_max) if each is not None) if given else 1,
    )


def assigners_of_rows(rows: pa.RecordBatch, schema: TableSchema, limits: BucketLimits) -> npt.NDArray[np.int64]:
    """Return for each row the number of the assigner that chooses its bucket; each assigner may run in a separate task.

    ``rows`` contain at least the columns of the primary key and of the partition.
    """
    hashes = key_hashes(rows, schema)
    if schema.crosses_partitions or not schema.partition_keys:
        return assigners_of(0, hashes, limits.assigner_count)
    partitions, codes = partition_codes(rows, schema)
    assigners = np.empty(rows.num_rows, dtype=np.int64)
    for code, partition in enumerate(partitions):
        of_partition = codes == code
        of_hash = partition_hash(partition, schema)
        assigners[of_partition] = assigners_of(of_hash, hashes[of_partition], limits.assigner_count)
    return assigners


def dynamic_buckets_of(
    *,
    table: str,
    schema: TableSchema,
    options: TableOptions,
    file_store: FileStore,
    lookup: PointLookup,
    write_context: WriteContext,
    base: Snapshot | None,
) -> DynamicBuckets:
    """Return the router of a task's rows to the dynamic buckets of a table.

    If a key may be in any partition, it refuses rows that overwrite only some partitions; dropping partitions writes no
    rows.
    """
    limits = limits_of(options)
    is_overwrite = write_context.overwrite is not None
    if not schema.crosses_partitions:
        return HashBuckets(
            schema=schema, limits=limits, indexes=file_store.hash_indexes, base=base, is_new=is_overwrite
        )
    refusal = None
    if write_context.overwrite is not None and {} not in write_context.overwrite.specs:
        refusal = (
            f"table {table}: its primary key ({', '.join(schema.primary_keys)}) lacks a partition column "
            f"({', '.join(schema.partition_keys)}), so the new rows of some partitions may have keys that are in "
            "others. Overwrite the whole table (partition={}), or drop the partitions and append the rows"
        )

    def row_counts(partition: bytes) -> Mapping[int, int]:
        live = file_store.scan.live_files(base, partitions=(partition,))
        counts: Counter[int] = Counter()
        for bucket in live.buckets_of(partition):
            counts[bucket] += sum(entry.file.row_count for entry in live.of(partition, bucket))
        return counts

    return KeyBuckets(
        schema=schema,
        merge_engine=options.merge_engine,
        limits=limits,
        lookup=lookup,
        base=None if is_overwrite else base,
        row_counts=row_counts,
        removes_on_delete=options.removes_on_delete,
        refusal=refusal,
    )
