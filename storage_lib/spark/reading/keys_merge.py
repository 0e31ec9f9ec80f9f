"""A merge of the keys of files, which finds which of their rows newer ones replace; remembered by files.

The keys of small files are merged in this process, others by a Spark job, for which the query waits that asks first.
The bits of a bucket are a function of its files, so later queries, and those of other snapshots in which the bucket has
the same files, find them remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.catalog.table_cache import TableKey, key_of
from storage_lib.spark.data_source.batch_reader import packed_splits
from storage_lib.spark.reading.remembered_bits import BucketFiles, RememberedBits
from storage_lib.spark.types.spark_errors import storage_errors_of_spark
from storage_lib.table.read.left_out_rows import STANDING_SCHEMA, LeftOutRows, encoded, left_out_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.file_store.split import Split
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.dynamic_table import DynamicTable

_REMEMBERED_BYTES = 64 * 1024 * 1024
_STANDING = "file_name string, start bigint, row_count bigint, bits binary"
HERE_BYTES_MAX = 4 * 1024 * 1024
"""Size of files whose keys are merged in this process: tasks for them would take longer."""
_HERE_ROWS_MAX = 500_000
_HERE_FILES_MAX = 64
_HERE_THREADS = 8

_remembered = RememberedBits(_REMEMBERED_BYTES)


def known_left_out(table: DynamicTable, merged: Plan) -> dict[str, LeftOutRows] | None:
    """Return the rows to leave out of the files of a plan, by file name; None unless all buckets are remembered."""
    found: dict[str, LeftOutRows] = {}
    for bucket in _buckets(table, merged):
        rows = _remembered.get(bucket)
        if rows is None:
            return None
        found |= rows
    return found


def are_wanted(table: DynamicTable, merged: Plan) -> bool:
    """Return whether all buckets of the plan were asked for."""
    return all(_remembered.is_wanted(bucket) for bucket in _buckets(table, merged))


def want(table: DynamicTable, merged: Plan) -> None:
    """Ask for all buckets of the plan."""
    for bucket in _buckets(table, merged):
        _remembered.want(bucket)


def are_merged_here(merged: Plan) -> bool:
    """Return whether the keys of a plan are merged in this process."""
    is_small = merged.size_bytes <= HERE_BYTES_MAX and merged.row_count <= _HERE_ROWS_MAX
    return is_small and len(merged.entries) <= _HERE_FILES_MAX


def left_out_by_keys(
    spark: SparkSession, table: DynamicTable, read: ReadBuilder, merged: Plan, *, remembers: bool
) -> Mapping[str, LeftOutRows]:
    """Return the rows to leave out of the files of a plan, by file name; merge buckets that are not remembered.

    ``remembers``: later reads find the result. They would not if the plan has files of a few keys only.

    REQUIRES ``ReadBuilder.tells_standing_rows``, and a plan with all files of each bucket that overlap. Raises as
    ``ReadBuilder.read_split``.
    """
    found: dict[str, LeftOutRows] = {}
    missing: dict[tuple[bytes, int], BucketFiles] = {}
    for bucket in _buckets(table, merged):
        rows = _remembered.get(bucket)
        if rows is None:
            missing[bucket.partition, bucket.bucket] = bucket
        else:
            found |= rows
    if missing:
        plan = merged.where(lambda entry: (entry.partition, entry.bucket) in missing)
        splits = list(packed_splits(read, [plan], table.options.source_split_target_size_bytes))
        sent = _merged_here(table, splits) if are_merged_here(plan) else _merged_by_tasks(spark, table, splits)
        merged_now = left_out_rows(sent, {entry.file.file_name: entry.file.row_count for entry in plan.entries})
        for partition, number, files in plan.by_bucket() if remembers else ():
            rows = {file.file_name: merged_now[file.file_name] for file in files}
            _remembered.put(missing[partition, number], rows)
        found |= merged_now
    return found


def _merged_here(table: DynamicTable, tasks: Sequence[tuple[Split, ...]]) -> pa.Table:
    read = table.new_read()
    splits = [split for task in tasks for split in task]
    # Threads wait for a remote store together.
    with ThreadPoolExecutor(min(_HERE_THREADS, len(splits))) as threads:
        batches = list(threads.map(lambda split: encoded(read.standing_rows(split)), splits))
    return pa.Table.from_batches(batches, STANDING_SCHEMA)


def _merged_by_tasks(spark: SparkSession, table: DynamicTable, splits: Sequence[tuple[Split, ...]]) -> pa.Table:
    tasks = KeysMergeTasks(key_of(table), tuple(splits))
    numbers = spark.range(0, len(splits), 1, len(splits))
    with storage_errors_of_spark():
        return numbers.mapInArrow(tasks, _STANDING).toArrow()  # type: ignore[arg-type, unused-ignore]


@dataclass(frozen=True, slots=True)
class KeysMergeTasks:
    """``splits`` by task."""

    key: TableKey
    splits: tuple[tuple[Split, ...], ...]

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Merge the keys of the tasks with these numbers; each Spark task receives one."""
        read = self.key.table().new_read()
        for each in numbers:
            for number in each.column(0).to_pylist():
                for split in self.splits[number]:
                    yield encoded(read.standing_rows(split))


def _buckets(table: DynamicTable, merged: Plan) -> Iterator[BucketFiles]:
    for partition, bucket, files in merged.by_bucket():
        yield BucketFiles.of(table.uuid, partition, bucket, (file.file_name for file in files))
