"""Batch read of a system table (``db.table$snapshots``), in one task because system tables are small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema

from storage_lib.spark.types.spark_schema import arrow_schema_of, conform

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from storage_lib.catalog.table_cache import TableKey
    from storage_lib.table.dynamic_table import DynamicTable


def system_struct(table: DynamicTable, system_table: str) -> StructType:
    """Return the columns of a system table as a Spark struct; ``NotFoundError`` for an unknown system table."""
    return from_arrow_schema(table.inspect.system_table_schema(system_table), prefer_timestamp_ntz=True)


class SystemTableReader(DataSourceReader):
    """Reader of one system table."""

    def __init__(self, key: TableKey, system_table: str, struct: StructType) -> None:
        self._key = key
        self._system_table = system_table
        self._arrow_schema = arrow_schema_of(struct)

    def partitions(self) -> Sequence[InputPartition]:
        """Plan a single partition."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  there is one
        """Read all rows."""
        table = self._key.table()
        for batch in table.inspect.read_system_table(self._system_table):
            yield conform(batch, self._arrow_schema, table.name)
