"""Batch read: a Spark partition is a split of one snapshot, chosen when the query is planned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from storage_lib.file_store.split import Split
from storage_lib.spark.spark_filters import split_filters
from storage_lib.spark.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from storage_lib.schema.predicate import Predicate
    from storage_lib.spark.table_cache import TableKey


@dataclass
class SplitPartition(InputPartition):
    """One split; None is what Spark makes up when there are none."""

    value: Split | None


class TableBatchReader(DataSourceReader):
    """Reads the columns of ``struct``; pickled into the tasks once it has been planned."""

    def __init__(self, key: TableKey, struct: StructType, snapshot_id: int | None) -> None:
        self._key = key
        self._columns = struct.fieldNames()
        self._arrow_schema = arrow_schema_of(struct)
        self._snapshot_id = snapshot_id
        self._predicate: Predicate | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802  Spark's name
        """Answer what we can answer exactly; Spark evaluates the rest."""
        self._predicate, left = split_filters(filters, self._key.table().schema)
        return left

    def partitions(self) -> Sequence[InputPartition]:
        """The splits of the snapshot that survive the filters' pruning."""
        table = self._key.table()
        plan = table.plan(filter=self._predicate, snapshot_id=self._snapshot_id)
        return [SplitPartition(split) for split in plan.splits(table.options.source_split_target_size_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Rows of one split that pass the pushed filters."""
        if not isinstance(partition.value, Split):
            return
        table = self._key.table()
        for batch in table.read_split(partition.value, columns=self._columns, filter=self._predicate):
            if batch.num_rows:
                yield conform(batch, self._arrow_schema, table.name)
