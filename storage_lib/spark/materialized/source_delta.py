"""Changes of a source between two snapshots as rows with weights: +1 for a new row, -1 for an old one.

The changes of a table with a key lack the old rows; these are looked up at the earlier snapshot. Small changes are read
and completed in this process, once for all tables that it refreshes, large ones by Spark's tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sql
from pyspark.sql.types import LongType, StructField, StructType

from storage_lib.schema.types.row_kind import RETRACT_BIT
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.incremental_range import BETWEEN
from storage_lib.spark.materialized.computed_once import frame_here
from storage_lib.spark.materialized.shared_changes import SharedChanges
from storage_lib.spark.materialized.weighted_rows import WEIGHT, net_rows, weighted
from storage_lib.spark.reading.native_read import SnapshotRead, frame_of_table
from storage_lib.spark.tasks.active_session import active_session
from storage_lib.spark.types.predicate_column import quoted
from storage_lib.spark.types.spark_schema import arrow_schema_of, conform, struct_of
from storage_lib.table.changes.multiset_change import summed_changes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

_BYTES_HERE_MAX = 16 << 20
_ROWS_HERE_MAX = 200_000
_SHARED = SharedChanges()
_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True)
class SourceDelta:
    """Net changes of columns of a source, as rows with ``_weight``.

    ``df`` makes a data frame of them, and ``here`` are the same rows in this process, if they are few. ``row_count``
    counts the rows; for changes that Spark's tasks read, it is the number of stored rows to read. 0: the source has not
    changed.
    """

    df: Callable[[SparkSession], DataFrame]
    row_count: int
    here: pa.Table | None = None


def source_delta(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> SourceDelta:
    """Return the changes of ``columns`` from snapshot ``before`` (0: the empty table) to ``after``.

    Raises ``SnapshotExpiredError`` or ``NotFoundError`` for a snapshot that has expired.
    """
    if before == 0:
        count = stored_rows(table, after)
        here = _first_rows(table, columns, after) if count <= _ROWS_HERE_MAX else None
        return SourceDelta(lambda spark: weighted(source_rows(spark, table, columns, after), 1), count, here)
    if _shows_only_compacted(table):
        count = stored_rows(table, before) + stored_rows(table, after)
        return SourceDelta(lambda spark: _compared(spark, table, columns, before, after), count)
    splits = table.new_read().plan_changes(start_snapshot_id=before, end_snapshot_id=after)
    row_count = sum(split.row_count for split in splits)
    if row_count > _ROWS_HERE_MAX or sum(split.size_bytes for split in splits) > _BYTES_HERE_MAX:
        return SourceDelta(lambda spark: _by_tasks(spark, table, columns, before, after), row_count)
    struct = _weighted(struct_of(table.schema, columns))
    rows = delta_rows(table, columns, before, after)

    def frame(spark: SparkSession) -> DataFrame:
        schema = arrow_schema_of(struct)
        batches = [conform(batch, schema, table.name) for batch in rows.to_batches()]
        return frame_here(spark, pa.Table.from_batches(batches, schema), struct)

    return SourceDelta(frame, rows.num_rows, rows)


def _first_rows(table: DynamicTable, columns: Sequence[str], snapshot_id: int) -> pa.Table | None:
    """Return the rows of a snapshot (0: the empty table) with weights; None if its files are large."""
    rows = table.arrow_schema.empty_table().select(list(columns))
    if snapshot_id:
        divided = table.new_read(snapshot_id=snapshot_id).plan_divided()
        if divided.unmerged.size_bytes + divided.merged.size_bytes > _BYTES_HERE_MAX:
            return None
        rows = table.to_arrow(columns=list(columns), snapshot_id=snapshot_id)
    weights = pa.array(np.ones(rows.num_rows, np.int64))
    return rows.append_column(_WEIGHT_FIELD, weights)


def all_few(changed: Mapping[str, SourceDelta]) -> bool:
    """Return whether the changed rows of all sources are in this process."""
    return all(each.here is not None for each in changed.values())


def source_rows(spark: SparkSession, table: DynamicTable, columns: Sequence[str], snapshot_id: int) -> DataFrame:
    """Return ``columns`` of a snapshot's rows (0: the empty table)."""
    read = SnapshotRead(columns=columns, needed=frozenset(columns), snapshot_id=snapshot_id)
    return frame_of_table(spark, table, read).df


def stored_rows(table: DynamicTable, snapshot_id: int) -> int:
    """Return the number of rows in the files of a snapshot (0: the empty table), before versions are merged."""
    return 0 if snapshot_id == 0 else table.inspect.snapshot(snapshot_id).total_record_count


def delta_rows(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> pa.Table:
    """Read the changes of ``columns`` in this process, as rows with ``_weight``; rows that did not change cancel out.

    ``before`` and ``after`` are snapshot ids. Raises as ``DynamicTable.changes``.
    """
    changed = _SHARED.rows(table, columns, before, after)
    rows = pa.concat_tables([changed.old, changed.new])
    weights = np.repeat(np.array([-1, 1], dtype=np.int64), [changed.old.num_rows, changed.new.num_rows])
    batches = []
    for batch, net in summed_changes(rows, weights):
        signs = 1 - 2 * (net.to_numpy() & RETRACT_BIT).astype(np.int64)
        batches.append(batch.append_column(_WEIGHT_FIELD, pa.array(signs)))
    schema = rows.schema.append(_WEIGHT_FIELD)
    return pa.Table.from_batches(batches, schema)


def _shows_only_compacted(table: DynamicTable) -> bool:
    """Return whether reads leave out rows until a compaction, so that changes and rows are of different moments."""
    options = table.options
    has_vectors = options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read
    return has_vectors and bool(table.schema.primary_keys)


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


def _weighted(struct: StructType) -> StructType:
    return StructType([*struct.fields, StructField(WEIGHT, LongType(), nullable=False)])
