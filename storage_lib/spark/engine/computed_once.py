"""Rows that several statements read, computed once: few rows in the driver, more in Spark's cache.

Spark knows the size of rows that are computed. So it broadcasts few of them, and drops joins with none, where it would
overestimate what a query over changes returns and shuffle the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import types as sql_types
from pyspark.sql.types import StringType, StructType

from storage_lib.spark.writing.write_job import collected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.materialized.algebra import Steps

ROWS_HERE_MAX = 20_000
_LONG_ROWS_HERE_MAX = 4_000
"""Of rows with texts, which may be long; ``spark.driver.maxResultSize`` limits their bytes."""
_KEPT_BY_ARROW = (
    sql_types.BooleanType,
    sql_types.ByteType,
    sql_types.ShortType,
    sql_types.IntegerType,
    sql_types.LongType,
    sql_types.FloatType,
    sql_types.DoubleType,
    sql_types.DecimalType,
    sql_types.DateType,
    sql_types.TimestampType,
    sql_types.TimestampNTZType,
    sql_types.BinaryType,
    sql_types.StringType,
)
"""Types whose values are the same after a conversion to Arrow and back."""
_OF_ANY_LENGTH = (sql_types.BinaryType, sql_types.StringType)


@dataclass(frozen=True, slots=True)
class ComputedOnce:
    """Rows that are not computed again. ``here``: the rows in this process, None if there are many."""

    df: DataFrame
    row_count: int
    here: pa.Table | None


@contextmanager
def computed_once(df: DataFrame) -> Iterator[ComputedOnce]:
    """Compute rows, and give the body rows that are read from memory or disk.

    Raises what the query raises.
    """
    here = _few_rows(df)
    if here is not None:
        yield ComputedOnce(frame_here(df.sparkSession, here, df.schema), here.num_rows, here)
        return
    persisted = df.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield ComputedOnce(persisted, persisted.count(), None)
    finally:
        persisted.unpersist()


@contextmanager
def computed_steps(spark: SparkSession, steps: Steps) -> Iterator[DataFrame | None]:
    """Give the body the rows of a statement whose shared relations are computed once each, before it; None if it has
    no rows because these have none.
    """
    with ExitStack() as stack:

        def compute(name: str, select: str) -> bool:
            rows = stack.enter_context(computed_once(spark.sql(select)))
            rows.df.createOrReplaceTempView(name)
            stack.callback(spark.catalog.dropTempView, name)
            return rows.row_count > 0

        last = steps.run(compute)
        yield None if last is None else spark.sql(last)


def frame_here(spark: SparkSession, rows: pa.Table, struct: StructType) -> DataFrame:
    """Return a data frame of the rows in this process, whose number Spark then knows."""
    return spark.createDataFrame(rows, struct) if rows.num_rows else spark.createDataFrame([], struct)


def _few_rows(df: DataFrame) -> pa.Table | None:
    """Compute the rows; return None if there are many, or if they may be large."""
    if not _keeps_values(df.schema):
        return None
    # A cache that is counted and then collected takes twice as long for few rows.
    may_be_long = any(isinstance(field.dataType, _OF_ANY_LENGTH) for field in df.schema.fields)
    rows_max = min(ROWS_HERE_MAX, _LONG_ROWS_HERE_MAX) if may_be_long else ROWS_HERE_MAX
    rows = collected(df.limit(rows_max + 1))
    return None if rows is None or rows.num_rows > rows_max else rows


def _keeps_values(struct: StructType) -> bool:
    kinds = [field.dataType for field in struct.fields]
    binary = StringType()
    return all(isinstance(kind, _KEPT_BY_ARROW) for kind in kinds) and all(
        kind == binary for kind in kinds if isinstance(kind, StringType)
    )
