"""Rows of a source, and its changes between two snapshots, as data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StructField, StructType

from storage_lib.materialized.sources.lake_source import LakeDelta, LakeSource
from storage_lib.materialized.sources.own_source import OwnSource
from storage_lib.materialized.sources.source_delta import TableDelta
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.incremental_range import BETWEEN
from storage_lib.spark.engine.computed_once import frame_here
from storage_lib.spark.engine.weighted_frames import net_rows, weighted
from storage_lib.spark.lakes.lake_frame import lake_frame
from storage_lib.spark.reading.native_read import SnapshotRead, frame_of_table
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform, struct_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.lakes.lake_history import LakeFile
    from storage_lib.materialized.sources.source import Source, SourceDelta
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.dynamic_table import DynamicTable


def source_rows(spark: SparkSession, table: DynamicTable, columns: Sequence[str], snapshot_id: int) -> DataFrame:
    """Return ``columns`` of a snapshot's rows (0: the empty table)."""
    read = SnapshotRead(columns=columns, needed=frozenset(columns), snapshot_id=snapshot_id)
    return frame_of_table(spark, table, read).df


def rows_of_source(spark: SparkSession, source: Source, columns: Sequence[str], number: int) -> DataFrame:
    """Return ``columns`` of the rows of a state of a source (0: no rows)."""
    if isinstance(source, OwnSource):
        return source_rows(spark, source.table, columns, number)
    if isinstance(source, LakeSource):
        return _lake_rows(spark, source, columns, number)
    raise TypeError(source)


def delta_frame(spark: SparkSession, delta: SourceDelta) -> DataFrame:
    """Return the net changes of a source, as rows with ``_weight``; Spark's tasks read them where they are many."""
    if isinstance(delta, LakeDelta):
        return _lake_delta(spark, delta)
    if isinstance(delta, TableDelta):
        return _table_delta(spark, delta)
    raise TypeError(delta)


def _table_delta(spark: SparkSession, delta: TableDelta) -> DataFrame:
    table, columns = delta.table, delta.columns
    if delta.before == 0:
        return weighted(source_rows(spark, table, columns, delta.after), 1)
    if delta.is_compared:
        return _compared(spark, table, columns, delta.before, delta.after)
    if delta.here is None:
        return _by_tasks(spark, table, columns, delta.before, delta.after)
    return _frame_of_rows(spark, delta.here, table.schema, columns, table.name)


def _frame_of_rows(
    spark: SparkSession, rows: pa.Table, schema: TableSchema, columns: Sequence[str], name: str
) -> DataFrame:
    struct = StructType([*struct_of(schema, columns).fields, StructField(WEIGHT, LongType(), nullable=False)])
    wanted = arrow_schema_of(struct)
    batches = [conform(batch, wanted, name) for batch in rows.to_batches()]
    return frame_here(spark, pa.Table.from_batches(batches, wanted), struct)


def _lake_delta(spark: SparkSession, delta: LakeDelta) -> DataFrame:
    source, columns = delta.source, delta.columns
    if delta.here is not None:
        return _frame_of_rows(spark, delta.here, source.schema, columns, source.history.name)
    removed = None if delta.files is None else delta.files.removed
    added = None if delta.files is None else delta.files.added
    old = _lake_rows(spark, source, columns, delta.before, removed)
    new = _lake_rows(spark, source, columns, delta.after, added)
    return net_rows(weighted(old, -1).union(weighted(new, 1)))


def _lake_rows(
    spark: SparkSession,
    source: LakeSource,
    columns: Sequence[str],
    number: int,
    files: Sequence[LakeFile] | None = None,
) -> DataFrame:
    """Return rows of a state of a table of another format, of these ``files`` only (None: of all)."""
    struct = struct_of(source.schema, columns)
    if number == 0:
        return spark.createDataFrame([], struct)
    only = None if files is None else [(each.path, each.size_bytes) for each in files]
    needed = source.present(columns, number)
    return lake_frame(spark, source.history.version(number), struct, needed=needed, only=only)


def _by_tasks(spark: SparkSession, table: DynamicTable, columns: Sequence[str], before: int, after: int) -> DataFrame:
    keys = list(table.schema.primary_keys)
    kind = table.options.row_kind_field
    names = list(dict.fromkeys([*columns, *keys]))
    with active_session(spark):
        reader = spark.read.format(statement_options.SOURCE_NAME).schema(
            struct_of(table.schema, names, row_kind_column=kind)
        )
        changes = reader.options(**statement_options.options_of(table), **{BETWEEN: f"{before},{after}"}).load()
    is_new = quoted(kind).startswith("+")
    new = changes.where(is_new).select(*map(quoted, columns), sql.lit(1).cast("bigint").alias(WEIGHT))
    if keys:
        touched = changes.select(*[quoted(name).alias(f"touched {name}") for name in keys]).distinct()
        rows = source_rows(spark, table, names, before)
        same = [quoted(name) == quoted(f"touched {name}") for name in keys]
        old = rows.join(touched, on=same, how="left_semi")
    else:
        old = changes.where(~is_new)
    old = old.select(*map(quoted, columns), sql.lit(-1).cast("bigint").alias(WEIGHT))
    return net_rows(old.union(new))


def _compared(spark: SparkSession, table: DynamicTable, columns: Sequence[str], before: int, after: int) -> DataFrame:
    old, new = (weighted(source_rows(spark, table, columns, at), weight) for at, weight in ((before, -1), (after, 1)))
    return net_rows(old.union(new))
