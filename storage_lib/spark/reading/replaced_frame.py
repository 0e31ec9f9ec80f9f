"""Rows of large files without those that a few newer rows replace: Spark's own readers and an anti join."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql

from storage_lib.spark.reading.frame_by_keys import FrameByKeys
from storage_lib.spark.reading.native_groups import frame_of, native_groups
from storage_lib.spark.reading.null_columns import with_nulls
from storage_lib.spark.reading.united_frames import united
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform, struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.dynamic_table import DynamicTable

_REPLACED = "__replaced_{}"


def replaced_frame(
    spark: SparkSession,
    table: DynamicTable,
    builder: ReadBuilder,
    merged: Plan,
    columns: Sequence[str],
    needed: Collection[str],
) -> FrameByKeys | None:
    """Return ``columns`` of the rows of a plan; those that are not ``needed`` are null. None: merge them instead."""
    keys = table.schema.primary_keys
    wanted = list(dict.fromkeys([*columns, *keys]))
    runs = builder.large_runs(merged)
    if runs is None or any(name.lower().startswith(_REPLACED.format("")) for name in wanted):
        return None
    options = table.address.options
    groups = native_groups(spark, builder, runs.files, wanted, {*needed, *keys}, options)
    if sum(len(group.files) for group in groups) != len(runs.files):
        return None
    names = [name for name in columns if name in needed] or list(columns[:1])
    found = builder.newer_rows(runs, names)
    if found is None:
        return None
    large = united([frame_of(spark, builder, table.schema, group, options) for group in groups])
    key_struct = struct_of(table.schema, keys)
    newer = _frame(spark, found.keys, key_struct, table.name)
    newer = newer.toDF(*[_REPLACED.format(place) for place in range(len(keys))])
    same = [quoted(name) == quoted(_REPLACED.format(place)) for place, name in enumerate(keys)]
    remaining = large.join(sql.broadcast(newer), on=same, how="left_anti").select(*map(quoted, columns))
    rows = _frame(spark, found.rows, struct_of(table.schema, names), table.name)
    added = with_nulls(rows, table.schema, columns)
    return FrameByKeys(united([remaining, added]), len(runs.files), sum(file.size_bytes for file in runs.files))


def _frame(spark: SparkSession, rows: pa.Table, struct: StructType, table: str) -> DataFrame:
    if rows.num_rows == 0:
        return spark.createDataFrame([], struct)
    schema = arrow_schema_of(struct)
    batches = [conform(batch, schema, table) for batch in rows.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, schema).combine_chunks(), struct)
