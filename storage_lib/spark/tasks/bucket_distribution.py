"""Brings the rows of one bucket to one task, by the bucket function of the files themselves.

Tracked: one task owns a bucket in all partitions, for a log transaction belongs to a bucket. Untracked: a
(partition, bucket) to a task, so that a write of many partitions spreads and each bucket still gets one file.
Dynamic buckets: to each task the keys of one assigner, which finds their buckets there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.pandas.functions import arrow_udf

from storage_lib.schema.options.table_options import TableOptions
from storage_lib.schema.placing.bucketing import bucket_of
from storage_lib.spark.translation.native_bucket import native_bucket
from storage_lib.spark.translation.predicate_column import quoted
from storage_lib.table.write.dynamic_buckets import assigners_of_rows, limits_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from storage_lib.schema.table_schema import TableSchema


def by_bucket(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Each bucket in one task: bucket b in task b, or in task b modulo the cores of a local session.

    More tasks than cores come one after the other, and each costs a micro-batch tens of milliseconds. How many cores a
    cluster will have is not known yet when a stream begins.
    """
    if schema.has_dynamic_buckets:
        return by_assigner(df, schema)
    if len(schema.bucket_numbers) == 1:
        return df.repartition(1)
    context = df.sparkSession.sparkContext
    is_local = (context.master or "").startswith("local")
    task_count = min(schema.bucket_count, context.defaultParallelism) if is_local else schema.bucket_count
    return df.repartitionById(task_count, bucket_column(df, schema))


def by_partition_and_bucket(df: DataFrame, schema: TableSchema) -> DataFrame:
    """Each (partition, bucket) in one task, spread over the session's parallelism.

    Rows that go to no bucket in particular, nor to a partition, stay where they are.
    """
    if schema.has_dynamic_buckets:
        return by_assigner(df, schema)
    if schema.is_bucket_unaware and not schema.partition_keys:
        return df
    task_count = max(schema.bucket_count, df.sparkSession.sparkContext.defaultParallelism)
    keys = [quoted(name) for name in schema.partition_keys]
    if schema.bucket_count > 1:
        keys.append(bucket_column(df, schema))
    return df.repartition(task_count, *keys) if keys else df.repartition(1)


def by_assigner(df: DataFrame, schema: TableSchema) -> DataFrame:
    """The rows of each assigner of dynamic buckets in one task: which bucket a key has is known there only."""
    limits = limits_of(TableOptions.parse(schema.options))
    if limits.assigner_count == 1:
        return df.repartition(1)
    names = [field.name for field in (*schema.partition_fields, *schema.key_fields)]

    def assigner_of_keys(keys: pa.Array) -> pa.Array:
        columns = dict(zip(names, keys.flatten(), strict=True))
        rows = _rows_of_keys(columns, schema, len(keys))
        return pa.array(assigners_of_rows(rows, schema, limits), pa.int32())

    compute = arrow_udf(assigner_of_keys, "int")  # type: ignore[call-overload]
    return df.repartitionById(limits.assigner_count, compute(sql.struct(*[quoted(name) for name in names])))


def bucket_column(df: DataFrame, schema: TableSchema) -> Column:
    """The bucket of a row (int): by Spark alone, or else on Arrow batches by ``schema.placing.bucketing``."""
    native = native_bucket(df.schema, schema)
    return python_bucket(schema) if native is None else native


def python_bucket(schema: TableSchema) -> Column:
    """The bucket of a row of any key, computed in the Python process of the task."""
    names = [field.name for field in schema.bucket_key_fields]

    def bucket_of_keys(keys: pa.Array) -> pa.Array:
        columns = dict(zip(names, keys.flatten(), strict=True))
        return pa.array(bucket_of(_rows_of_keys(columns, schema, len(keys)), schema), pa.int32())

    # Spark tells the kind of function by its annotations; its own stubs ask for a constant that it warns about.
    compute = arrow_udf(bucket_of_keys, "int")  # type: ignore[call-overload]
    return compute(sql.struct(*[quoted(name) for name in names]))


def _rows_of_keys(columns: dict[str, pa.Array], schema: TableSchema, row_count: int) -> pa.RecordBatch:
    """Rows of the table that hold only the bucket's key; the other columns are of no matter to it."""
    arrays = [
        columns[field.name].cast(field.type.arrow) if field.name in columns else pa.nulls(row_count, field.type.arrow)
        for field in schema.fields
    ]
    nullable = pa.schema([pa.field(field.name, field.type.arrow) for field in schema.fields])
    return pa.RecordBatch.from_arrays(arrays, schema=nullable)
