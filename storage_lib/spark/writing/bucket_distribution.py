"""Repartition rows so that each bucket is written by one task, using the same bucket function as the files.

With change tracking, one task owns a bucket in all partitions, because a log transaction belongs to a bucket. Without,
one task owns a (partition, bucket), so that a write of many partitions is spread and each bucket still gets one file.
With dynamic buckets, each task owns the keys of one assigner, which determines their buckets in the task.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql

from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.spark.tasks.session_kind import default_parallelism, is_local
from storage_lib.spark.types.jvm_bucket import jvm_bucket
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.versions.numbered_rows import numbered, partitioned_by_number, without_number
from storage_lib.table.write.dynamic_buckets import assigners_of_rows, limits_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage_lib.schema.table_schema import TableSchema


def by_bucket(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Put each bucket in one task: bucket b in task b, or in task b modulo the cores of a local session.

    Tasks beyond the number of cores run one after the other, and each adds tens of milliseconds to a micro-batch. The
    number of cores of a cluster is not known when a stream starts, so a cluster gets one task per bucket.
    """
    if schema.has_dynamic_buckets:
        return by_assigner(df, schema)
    if len(schema.bucket_numbers) == 1:
        return df.repartition(1)
    spark = df.sparkSession
    cores = default_parallelism(spark) if is_local(spark) else None
    task_count = schema.bucket_count if cores is None else min(schema.bucket_count, cores)
    return partitioned_by_number(*with_bucket(df, schema), task_count)


def by_partition_and_bucket(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Put each (partition, bucket) in one task, spread over the session's parallelism.

    The buckets of a partition go to different tasks as far as there are tasks: a hash of their numbers would put three
    of four buckets in one task. Where the parallelism is unknown, Spark chooses the number of tasks, by
    ``spark.sql.shuffle.partitions`` and the size of the data.
    Rows of an unpartitioned, bucket-unaware table are not repartitioned.
    """
    if schema.has_dynamic_buckets:
        return by_assigner(df, schema)
    if schema.is_bucket_unaware and not schema.partition_keys:
        return df
    partition = [quoted(name) for name in schema.partition_keys]
    is_bucketed = schema.bucket_count > 1
    if not partition and not is_bucketed:
        return df.repartition(1)
    rows, numbers = with_bucket(df, schema) if is_bucketed else (df, sql.lit(0))
    bucket = [numbers] if is_bucketed else []
    cores = default_parallelism(df.sparkSession)
    if cores is None:
        return without_number(rows.repartition(*partition, *bucket))
    first = [sql.hash(*partition).cast("bigint")] if partition else []
    task_count = max(schema.bucket_count, cores)
    # The sum of an INT and a BIGINT can't overflow.
    task = sql.pmod(reduce(add, [*first, *bucket]), sql.lit(task_count)).cast("int")
    return partitioned_by_number(rows, task, task_count)


def by_assigner(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Put the rows of each assigner of dynamic buckets in one task: only the assigner knows the bucket of a key."""
    limits = limits_of(TableOptions.parse(schema.options))
    if limits.assigner_count == 1:
        return df.repartition(1)
    names = [field.name for field in (*schema.partition_fields, *schema.key_fields)]

    def assigner_of_keys(keys: pa.Array) -> pa.Array:
        columns = dict(zip(names, keys.flatten(), strict=True))
        rows = _rows_of_keys(columns, schema, len(keys))
        return pa.array(assigners_of_rows(rows, schema, limits), pa.int32())

    numbered_rows, assigner = numbered(df, [quoted(name) for name in names], assigner_of_keys)
    return partitioned_by_number(numbered_rows, assigner, limits.assigner_count)


def with_bucket(df: DataFrame, schema: TableSchema) -> tuple[DataFrame, Column]:
    """Return the rows, as ``numbered`` does, and a column with the bucket of each (int).

    It is computed in the JVM if possible, else in Python.
    """
    computed = jvm_bucket(df.schema, schema)
    return with_python_bucket(df, schema) if computed is None else (df, computed)


def with_python_bucket(df: DataFrame, schema: TableSchema) -> tuple[DataFrame, Column]:
    """Return the same for any key type, computed in the Python process of the task."""
    names = [field.name for field in schema.bucket_key_fields]

    def bucket_of_keys(keys: pa.Array) -> pa.Array:
        columns = dict(zip(names, keys.flatten(), strict=True))
        return pa.array(bucket_of(_rows_of_keys(columns, schema, len(keys)), schema), pa.int32())

    return numbered(df, [quoted(name) for name in names], bucket_of_keys)


def _rows_of_keys(columns: dict[str, pa.Array], schema: TableSchema, row_count: int) -> pa.RecordBatch:
    """Return rows of the table with only the key columns filled; the other columns do not affect the bucket."""
    arrays = [
        columns[field.name].cast(field.type.arrow) if field.name in columns else pa.nulls(row_count, field.type.arrow)
        for field in schema.fields
    ]
    nullable = pa.schema([pa.field(field.name, field.type.arrow) for field in schema.fields])
    return pa.RecordBatch.from_arrays(arrays, schema=nullable)
