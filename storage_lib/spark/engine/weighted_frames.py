"""Data frames of rows with weights (``storage_lib.materialized.sources.weighted_rows``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.types.row_kind import RowKind
from storage_lib.spark.types.predicate_column import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def weighted(rows: DataFrame, weight: int) -> DataFrame:
    """Return rows, each with the same weight."""
    return rows.withColumn(WEIGHT, sql.lit(weight).cast("bigint"))


def net_rows(rows: DataFrame) -> DataFrame:
    """Sum the weights of equal rows; rows with weight 0 are omitted."""
    columns = [quoted(name) for name in rows.columns if name != WEIGHT]
    return rows.groupBy(*columns).agg(sql.sum(WEIGHT).alias(WEIGHT)).where(sql.col(WEIGHT) != 0)


def rows_with_kinds(rows: DataFrame, kind_column: str) -> DataFrame:
    """Repeat each row by its weight, with the row kind of the weight's sign as the last column."""
    columns = [quoted(name) for name in rows.columns if name != WEIGHT]
    symbol = sql.when(sql.col(WEIGHT) > 0, RowKind.INSERT.symbol).otherwise(RowKind.DELETE.symbol)
    repeated = sql.explode(sql.array_repeat(symbol, sql.abs(sql.col(WEIGHT)).cast("int")))
    return rows.select(*columns, repeated.alias(kind_column))
