"""Incremental batch read: each Spark partition is the changes of one bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from storage_lib.spark.types.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.spark.data_source.incremental_range import IncrementalRange
    from storage_lib.table.protocol.change_split import ChangeSplit


@dataclass
class ChangePartition(InputPartition):
    """Changes of one bucket; None in the placeholder that Spark creates for an empty plan."""

    value: ChangeSplit | None


class TableChangesReader(DataSourceReader):
    """Batch reader of changes for the columns of ``struct``, which include the row kind."""

    def __init__(self, key: TableKey, struct: StructType, changes: IncrementalRange) -> None:
        self._key = key
        self._arrow_schema = arrow_schema_of(struct)
        self._changes = changes

    def partitions(self) -> Sequence[InputPartition]:
        """Plan one partition for each bucket with changes."""
        splits = self._changes.plan(self._key.table())
        # Of no partition, Spark before 4.2 makes None.
        return [ChangePartition(split) for split in splits] or [ChangePartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the changes of one bucket, in order."""
        if partition.value is None:
            return
        table = self._key.table()
        for batch in table.new_read().read_changes(partition.value):
            if batch.num_rows:
                yield conform(batch, self._arrow_schema, table.name)
