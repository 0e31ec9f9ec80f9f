"""Incremental batch read: a Spark partition is the changes of one bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage_lib.spark.translation.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage_lib.spark.batch.incremental_range import IncrementalRange
    from storage_lib.spark.tasks.table_cache import TableKey
    from storage_lib.table.protocol.change_split import ChangeSplit


@dataclass
class ChangePartition(InputPartition):
    """One bucket's changes; None is what Spark makes up when there are none."""

    value: ChangeSplit | None


class TableChangesReader(DataSourceReader):
    """Reads the columns of ``struct``, which ends with the row kind."""

    def __init__(self, key: TableKey, struct: StructType, changes: IncrementalRange) -> None:
        self._key = key
        self._arrow_schema = arrow_schema_of(struct)
        self._changes = changes

    def partitions(self) -> Sequence[InputPartition]:
        """One a bucket that has changes."""
        return [ChangePartition(split) for split in self._changes.plan(self._key.table())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of one bucket, in order."""
        if partition.value is None:
            return
        table = self._key.table()
        for batch in table.new_read().read_changes(partition.value):
            if batch.num_rows:
                yield conform(batch, self._arrow_schema, table.name)
