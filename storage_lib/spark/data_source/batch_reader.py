"""Batch read: each Spark partition is a few splits of one snapshot, which is fixed when the query is planned."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage_lib.errors import InvalidInputError
from storage_lib.spark.data_source.natively_read_files import NativeFiles, group_of
from storage_lib.spark.types.spark_filters import split_filters
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform
from storage_lib.spark.versions.filter_classes import Filter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.file_store.planning.plan import DividedPlan, Plan
    from storage_lib.file_store.split import Split
    from storage_lib.schema.filter.predicate import Predicate
    from storage_lib.table.builders.read_builder import ReadBuilder

_PUSHES_FILTERS = "pyspark.sql.worker.data_source_pushdown_filters"
"""Spark's program that plans a read with filters. It runs only with ``spark.sql.python.filterPushdown.enabled``."""
_TASK_BYTES = 16 * 1024 * 1024
_MERGE_TASK_BYTES = 32 * 1024 * 1024
"""Size on storage of the key range of one task, if the files of a bucket have to be merged."""
_SPLIT_OVERHEAD_BYTES = 1024 * 1024


@dataclass
class SplitPartition(InputPartition):
    """Splits of one task; None in the placeholder that Spark creates for an empty plan."""

    value: tuple[Split, ...] | None


class TableBatchReader(DataSourceReader):
    """Batch reader for the columns of ``struct``; Spark pickles it into the tasks after planning.

    Filters are pushed only into its subclass: Spark refuses a reader that accepts them where filter pushdown is off.
    """

    def __init__(
        self,
        key: TableKey,
        struct: StructType,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp_millis: int | None = None,
        native_files: NativeFiles | None = None,
    ) -> None:
        """``native_files`` are left out: Spark's own readers read them."""
        self._key = key
        self._columns = struct.fieldNames()
        self._arrow_schema = arrow_schema_of(struct)
        self._snapshot_id = snapshot_id
        self._tag = tag
        self._timestamp_millis = timestamp_millis
        self._native_files = native_files
        self._predicate: Predicate | None = None

    def partitions(self) -> Sequence[InputPartition]:
        """Plan the splits of the snapshot that remain after pruning by the pushed filters."""
        table = self._key.table()
        read = table.new_read(
            filter=self._predicate,
            snapshot_id=self._snapshot_id,
            tag=self._tag,
            timestamp=self._timestamp_millis,
        )
        native = self._native_files
        plans = (read.plan(),) if native is None else plans_without(native, table.name, read.plan_divided())
        packed = packed_splits(read, plans, table.options.source_split_target_size_bytes)
        # Of no partition, Spark before 4.2 makes None.
        return [SplitPartition(each) for each in packed] or [SplitPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of one partition that match the pushed filters."""
        table = self._key.table()
        for split in partition.value or ():
            for batch in table.new_read(columns=self._columns, filter=self._predicate).read_split(split):
                if batch.num_rows:
                    yield conform(batch, self._arrow_schema, table.name)


class FilteringBatchReader(TableBatchReader):
    """Batch reader that evaluates filters of the query itself, and skips files by them."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Keep the filters that the table evaluates exactly; return the others, which Spark evaluates."""
        self._predicate, left = split_filters(filters, self._key.table().schema)
        return left


def batch_reader_class(*, has_own_scans: bool) -> type[TableBatchReader]:
    """Return the class of the reader for the Spark program that this process runs (a fork, or the main program).

    Spark keeps the reader of a data frame's first query, with its filters, for all other queries of the frame. So a
    reader keeps filters only if ``has_own_scans``: each query has a reader of its own (``FreshScans``).
    """
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    pushes = _PUSHES_FILTERS in sys.modules or (main is not None and main.name == _PUSHES_FILTERS)
    return FilteringBatchReader if pushes and has_own_scans else TableBatchReader


def packed_splits(read: ReadBuilder, plans: Iterable[Plan], target_size_bytes: int) -> Iterator[tuple[Split, ...]]:
    """Divide plans of ``read`` among tasks; large buckets that have to be merged are divided by ranges of keys."""
    target = min(target_size_bytes, _MERGE_TASK_BYTES)
    return _packed(split for plan in plans for split in read.splits(plan, target))


def plans_without(native: NativeFiles, table: str, divided: DividedPlan) -> tuple[Plan, Plan]:
    """Return a divided plan without the files that Spark reads itself.

    Raises ``InvalidInputError`` if those files are of another snapshot.
    """
    snapshot = divided.merged.snapshot
    if snapshot is None or snapshot.id != native.snapshot_id:
        now = "no snapshot" if snapshot is None else f"snapshot {snapshot.id}"
        message = (
            f"table {table}: the query was planned for snapshot {native.snapshot_id}, and its tag names {now} by now; "
            "read the table again"
        )
        raise InvalidInputError(message)
    return divided.merged, divided.unmerged.where(lambda entry: group_of(entry.file) not in native.groups)


def _packed(splits: Iterable[Split]) -> Iterator[tuple[Split, ...]]:
    """Combine small splits into tasks: one task per small split would cost more to schedule than to read."""
    task: list[Split] = []
    weight = 0
    for split in splits:
        task.append(split)
        weight += split.size_bytes + _SPLIT_OVERHEAD_BYTES
        if weight >= _TASK_BYTES:
            yield tuple(task)
            task, weight = [], 0
    if task:
        yield tuple(task)
