"""Answer of a query from metadata: numbers of rows and bounds of columns that manifests have, instead of files.

The optimised plan of the query over empty relations is kept, and only its aggregates directly above a relation are
replaced by the totals of the table's partitions. So Spark computes conditions on partitions, groups, and everything
above. If metadata does not answer all of the query, it is read normally.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType

from storage_lib.file_store.planning.partition_totals import Bounds, PartitionTotals, has_exact_bounds, total_of
from storage_lib.schema.encoding.binary_row import decode_row
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.spark.java.driver_java import driver_object
from storage_lib.spark.reading.frame_mark import FrameSnapshot
from storage_lib.spark.reading.query_needs import NUMBER, TableNeeds
from storage_lib.spark.types.spark_schema import arrow_schema_of, spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.dynamic_table import DynamicTable

_TOTAL = "total"
_COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRead:
    """A table of a query and its snapshot; ``snapshot_id`` 0 is the empty table.

    ``is_newest``: the query does not name the snapshot, so it is the same at each place of the query.
    """

    table: DynamicTable
    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    is_newest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataAnswer:
    """The query's result, and one line for each table for EXPLAIN."""

    df: DataFrame
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Totals:
    df: DataFrame
    snapshot: FrameSnapshot
    line: str


def answer_of(df: DataFrame, tables: Mapping[int, TableRead], needs: Mapping[int, TableNeeds]) -> MetadataAnswer | None:
    """Return the answer to a query over empty relations, whose tables are given by number; None if files have it.

    Raises as ``ReadBuilder.plan``.
    """
    spark = df.sparkSession
    plan: Any = df._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  pyspark has no public way to plans
    java = driver_object(spark, "MetadataAggregates")
    found = java.find(plan, NUMBER)
    if found is None:
        return None
    totals: dict[str, _Totals] = {}
    snapshots: dict[str, int] = {}
    for number, wanted in sorted(json.loads(found).items()):
        if int(number) not in tables:  # a table of another format, of which metadata tells no totals
            return None
        each = _totals_of(spark, tables[int(number)], wanted, needs[int(number)], snapshots)
        if each is None:
            return None
        totals[number] = each
    frames = {number: each.df._jdf for number, each in totals.items()}  # noqa: SLF001  likewise
    java_session = spark._jsparkSession  # noqa: SLF001  likewise
    answer = DataFrame(java.answer(java_session, plan, NUMBER, frames, df.columns), spark)
    # A plan has one mark: that of a snapshot that may not be joined with a stream, if there is one.
    mark = min((each.snapshot for each in totals.values()), key=lambda each: each.is_named)
    return MetadataAnswer(df=answer.alias(mark.alias()), lines=tuple(each.line for each in totals.values()))


def _totals_of(
    spark: SparkSession,
    read: TableRead,
    wanted: Mapping[str, Any],
    needs: TableNeeds,
    snapshots: dict[str, int],
) -> _Totals | None:
    """Return the totals of a table; ``snapshots`` are those of the query's tables without a named one, by location."""
    schema, name = read.table.schema, read.table.name
    plain, bounded = sorted(set(wanted["plain"])), sorted(set(wanted["bounded"]))
    if not _are_answered(schema, plain, wanted["counted"], bounded):
        return None
    snapshot_id = snapshots.get(read.table.location, read.snapshot_id) if read.is_newest else read.snapshot_id
    totals: tuple[PartitionTotals, ...] | None = ()
    files = 0
    if snapshot_id != 0:
        builder = read.table.new_read(
            filter=None if wanted["isTotal"] else needs.predicate,
            snapshot_id=snapshot_id,
            tag=read.tag,
            timestamp=read.timestamp_millis,
        )
        divided = builder.plan_divided()
        totals = builder.totals(divided, bounded)
        snapshot_id = 0 if divided.unmerged.snapshot is None else divided.unmerged.snapshot.id
        files = len(divided.unmerged.entries)
    if totals is None:
        return None
    if read.is_newest:
        snapshots[read.table.location] = snapshot_id or 0
    at = f"at snapshot {snapshot_id}" if snapshot_id else "without a snapshot"
    return _Totals(
        _frame(spark, schema, totals, plain, bounded, is_total=wanted["isTotal"]),
        FrameSnapshot(name, snapshot_id or 0, not read.is_newest),
        f"{name} {at}: answered by the metadata of {files} files",
    )


def _are_answered(schema: TableSchema, plain: Sequence[str], counted: Sequence[str], bounded: Sequence[str]) -> bool:
    """Return whether groups and conditions use partition columns only, and the aggregates are those of metadata."""
    of_partitions = all(
        name in schema.partition_keys
        and (has_exact_bounds(schema.field(name).type) or schema.field(name).type.root is TypeRoot.VARCHAR)
        for name in plain
    )
    # Numbers of nulls are not trusted.
    counts_rows = all(not schema.field(name).type.nullable for name in counted)
    return of_partitions and counts_rows and all(has_exact_bounds(schema.field(name).type) for name in bounded)


def _frame(
    spark: SparkSession,
    schema: TableSchema,
    totals: Sequence[PartitionTotals],
    plain: Sequence[str],
    bounded: Sequence[str],
    *,
    is_total: bool,
) -> DataFrame:
    """Return the totals with the columns that ``MetadataAggregates.java`` expects."""
    fields: list[StructField] = []
    columns: list[pa.Array] = []

    def add(label: str, name: str, values: Sequence[Any], *, nullable: bool) -> None:
        type_ = schema.field(name).type
        fields.append(StructField(label, spark_type_of(type_), nullable))
        columns.append(pa.array(values, type_.arrow))

    if is_total:
        count, bounds = total_of(totals, bounded)
        counts, rows = [count], [bounds]
    else:
        counts, rows = [each.row_count for each in totals], [dict(each.bounds) for each in totals]
        types = [field.type for field in schema.partition_fields]
        places = {field.name: place for place, field in enumerate(schema.partition_fields)}
        values = [decode_row(each.partition, types) for each in totals]
        for name in plain:
            in_order = [row[places[name]] for row in values]
            add(f"partition {name}", name, in_order, nullable=schema.field(name).type.nullable)
    fields.append(StructField(_TOTAL if is_total else _COUNT, LongType(), nullable=False))
    columns.append(pa.array(counts, pa.int64()))
    for name in bounded:
        of_column: list[Bounds] = [row[name] for row in rows]
        add(f"min {name}", name, [each.min for each in of_column], nullable=True)
        add(f"max {name}", name, [each.max for each in of_column], nullable=True)
    struct = StructType(fields)
    rows_of_totals = pa.Table.from_arrays(columns, names=struct.fieldNames()).cast(arrow_schema_of(struct))
    return spark.createDataFrame(rows_of_totals, struct)
