"""Columns whose values nobody needs: they are not read, and null in the data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.schema.table_schema import TableSchema


def with_nulls(df: DataFrame, schema: TableSchema, columns: Sequence[str]) -> DataFrame:
    """Return ``columns`` in this order: those that ``df`` has, and nulls of the table's types for the others."""
    read = set(df.columns)
    if len(read) == len(columns):
        return df
    types = {field.name: field.dataType for field in struct_of(schema, columns).fields}
    return df.select(
        *[quoted(name) if name in read else sql.lit(None).cast(types[name]).alias(name) for name in columns]
    )
