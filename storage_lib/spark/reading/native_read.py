"""A snapshot of a table as a data frame: natively where no rows have to be merged, else by the data source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage_lib.catalog.table_cache import key_of
from storage_lib.schema.filter.comparisons import IsNotNull
from storage_lib.schema.filter.predicate import And
from storage_lib.spark.data_source import statement_options
from storage_lib.spark.data_source.batch_reader import packed_splits, plans_without
from storage_lib.spark.data_source.fresh_scans import fresh_frame
from storage_lib.spark.data_source.natively_read_files import NativeFiles
from storage_lib.spark.reading.frame_by_keys import FrameByKeys
from storage_lib.spark.reading.frame_mark import FrameSnapshot
from storage_lib.spark.reading.keys_merge import are_merged_here, are_wanted, want
from storage_lib.spark.reading.marked_frame import marked_frame, marked_groups
from storage_lib.spark.reading.merge_tasks import are_few, frame_of_tasks
from storage_lib.spark.reading.native_groups import NativeGroup, frame_of, native_groups
from storage_lib.spark.reading.null_columns import with_nulls
from storage_lib.spark.reading.replaced_frame import replaced_frame
from storage_lib.spark.reading.united_frames import united
from storage_lib.spark.tasks.session_kind import is_connect
from storage_lib.spark.types.spark_schema import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.file_store.planning.plan import DividedPlan, Plan
    from storage_lib.schema.filter.predicate import Predicate
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.dynamic_table import DynamicTable

ENABLED = "spark.sql.dynamicTable.nativeReads"
"""Setting of a Spark session (default ``true``): whether its own readers read the files that need no merge."""

KEYS_FIRST_BYTES_MIN = 64 * 1024 * 1024
"""Size of files whose keys alone are merged already for the first query."""

KEYS_AGAIN_BYTES_MIN = 4 * 1024 * 1024
"""Size of files whose keys alone are merged for the second query: a merge of fewer rows is faster than a job more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRead:
    """Which rows to read: of one snapshot (default: the newest now), with ``columns`` in this order.

    ``predicate`` prunes files; rows still have to be filtered. ``needed`` are the columns whose values are used, so
    that others may be null; None: not known, and Spark may still pass conditions to the rows that are merged.
    ``is_newest``: the caller has looked up the newest snapshot. ``only_plans``: the rows are not going to be computed.
    ``snapshot_id`` 0 is the table before its first snapshot.
    """

    columns: Sequence[str]
    predicate: Predicate | None = None
    needed: frozenset[str] | None = None
    snapshot_id: int | None = None
    tag: str | None = None
    timestamp_millis: int | None = None
    is_newest: bool = False
    only_plans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSummary:
    """How many files and bytes of one read Spark reads itself, and how many the data source reads and merges.

    ``merges_keys``: the read was only planned. When it runs, Python tasks merge only keys, and Spark reads all files.
    """

    table: str
    snapshot_id: int | None
    native_files: int = 0
    native_bytes: int = 0
    merged_files: int = 0
    merged_bytes: int = 0
    merges_keys: bool = False

    def __str__(self) -> str:
        """Return one line for EXPLAIN."""
        at = "without a snapshot" if self.snapshot_id is None else f"at snapshot {self.snapshot_id}"
        instead = ", which will merge only their keys, for Spark's readers" if self.merges_keys else ""
        return (
            f"{self.table} {at}: {self.native_files} files ({self.native_bytes:,} bytes) by Spark's readers, "
            f"{self.merged_files} files ({self.merged_bytes:,} bytes) by Python tasks{instead}"
        )


@dataclass(frozen=True, slots=True)
class TableFrame:
    """The rows as a data frame, and how they are read."""

    df: DataFrame
    summary: ReadSummary


def frame_of_table(spark: SparkSession, table: DynamicTable, read: SnapshotRead) -> TableFrame:
    """Return the rows of a snapshot that is fixed now, by the parts that read it fastest.

    Raises ``InvalidInputError`` for an unknown column and for a filter that does not fit, ``NotFoundError`` or
    ``SnapshotExpiredError`` for the snapshot.
    """
    found = _frame_of_table(spark, table, read)
    is_named = not read.is_newest and (read.snapshot_id, read.tag, read.timestamp_millis) != (None, None, None)
    mark = FrameSnapshot(table.name, found.summary.snapshot_id or 0, is_named)
    return TableFrame(found.df.alias(mark.alias()), found.summary)


def live_frame(spark: SparkSession, table: DynamicTable, columns: Sequence[str]) -> DataFrame:
    """Return the rows of the snapshot that is the newest whenever they are computed, all read by the data source."""
    return _by_data_source(spark, table, SnapshotRead(columns=columns), {})


def _frame_of_table(spark: SparkSession, table: DynamicTable, read: SnapshotRead) -> TableFrame:
    struct_of(table.schema, read.columns)  # refuses unknown columns
    if read.snapshot_id == 0:
        return _no_rows(spark, table, read)
    builder = table.new_read(
        filter=read.predicate, snapshot_id=read.snapshot_id, tag=read.tag, timestamp=read.timestamp_millis
    )
    divided = builder.plan_divided()
    snapshot = divided.unmerged.snapshot
    if snapshot is None:
        return _no_rows(spark, table, read)
    options = table.address.options
    groups: list[NativeGroup] = []
    if is_enabled(spark):
        files = builder.unmerged_files(divided.unmerged)
        groups = native_groups(
            spark, builder, files, read.columns, read.columns if read.needed is None else read.needed, options
        )
    native = NativeFiles(snapshot.id, frozenset(group.key for group in groups))
    count = sum(len(group.files) for group in groups)
    by_keys, merges_keys = None, False
    if is_enabled(spark) and divided.merged.entries and count == len(divided.unmerged.entries):
        by_keys = _by_keys(spark, table, builder, divided.merged, read)
        merges_keys = by_keys is None and read.only_plans and _will_merge_keys(spark, table, builder, divided, read)
    left_files = len(divided.merged.entries) + len(divided.unmerged.entries) - count
    native_bytes = sum(group.size_bytes for group in groups)
    if by_keys is not None:
        count, left_files = count + by_keys.native_files, left_files - by_keys.native_files
        native_bytes += by_keys.native_bytes
    summary = ReadSummary(
        table=table.name,
        snapshot_id=snapshot.id,
        native_files=count,
        native_bytes=native_bytes,
        merged_files=left_files,
        merged_bytes=divided.merged.size_bytes + divided.unmerged.size_bytes - native_bytes,
        merges_keys=merges_keys,
    )
    if not divided.merged.entries and not divided.unmerged.entries:
        return TableFrame(_no_rows(spark, table, read).df, summary)
    frames = [frame_of(spark, builder, table.schema, group, options) for group in groups]
    if by_keys is not None:
        frames.append(by_keys.df)
    elif left_files or not groups:
        merged = _by_tasks(spark, table, builder, read, divided, native) if read.needed is not None else None
        if merged is None:
            # A tag may keep a snapshot that has expired otherwise.
            at = {} if read.tag is not None else {statement_options.SNAPSHOT_ID: str(snapshot.id)}
            merged = _by_data_source(spark, table, read, {**at, statement_options.NATIVE_FILES: native.to_json()})
        frames.append(merged)
    return TableFrame(united(frames), summary)


def is_enabled(spark: SparkSession) -> bool:
    """Return whether this session reads natively: its JVM is in reach, and ``ENABLED`` is not ``false``."""
    return not is_connect(spark) and (spark.conf.get(ENABLED, "true") or "true").lower() != "false"


def _by_keys(
    spark: SparkSession, table: DynamicTable, builder: ReadBuilder, merged: Plan, read: SnapshotRead
) -> FrameByKeys | None:
    """Return the rows of files that have to be merged, if their keys alone tell them; None: merge whole rows."""
    given = (spark, table, builder, merged, read.columns, _used(read))
    found = marked_frame(*given, may_merge_keys=False) or replaced_frame(*given)
    if found is not None or read.only_plans:
        return found
    may_merge_keys = _merges_keys(table, merged, read)
    is_search = _searches(table, read.predicate)
    if not is_search:
        want(table, merged)
    return marked_frame(*given, may_merge_keys=True, remembers=not is_search) if may_merge_keys else None


def _merges_keys(table: DynamicTable, merged: Plan, read: SnapshotRead) -> bool:
    """Return whether a read merges the keys of files, if Spark can read these.

    The first query of not so large files merges whole rows, so reads of ever new snapshots do not pay for bits that
    nobody uses again. Nor does a data frame whose query is not known: it may be asked for a few keys.
    """
    if read.needed is None:
        return False
    if are_merged_here(merged):
        return True
    if _searches(table, read.predicate):
        return False
    if merged.size_bytes >= KEYS_FIRST_BYTES_MIN:
        return True
    return merged.size_bytes >= KEYS_AGAIN_BYTES_MIN and are_wanted(table, merged)


def _will_merge_keys(
    spark: SparkSession, table: DynamicTable, builder: ReadBuilder, divided: DividedPlan, read: SnapshotRead
) -> bool:
    return (
        _merges_keys(table, divided.merged, read)
        and marked_groups(spark, table, builder, divided.merged, read.columns, _used(read)) is not None
    )


def _used(read: SnapshotRead) -> frozenset[str]:
    return frozenset(read.columns) if read.needed is None else read.needed


def _searches(table: DynamicTable, predicate: Predicate | None) -> bool:
    """Return whether few keys may match."""
    keys = frozenset(field.name for field in table.schema.key_fields)
    return predicate is not None and _compares(predicate.restrict_to(keys))


def _compares(predicate: Predicate | None) -> bool:
    match predicate:
        case None | IsNotNull():  # Spark says of every column of a join that it is not null.
            return False
        case And(left=left, right=right):
            return _compares(left) or _compares(right)
        case _:
            return True


def _no_rows(spark: SparkSession, table: DynamicTable, read: SnapshotRead) -> TableFrame:
    df = spark.createDataFrame([], struct_of(table.schema, read.columns))
    return TableFrame(df, ReadSummary(table=table.name, snapshot_id=None))


def _by_tasks(
    spark: SparkSession,
    table: DynamicTable,
    builder: ReadBuilder,
    read: SnapshotRead,
    divided: DividedPlan,
    native: NativeFiles,
) -> DataFrame | None:
    """Return the rows that Spark does not read itself, with nulls in columns that nobody needs; None for many files."""
    if not is_enabled(spark):
        return None
    plans = plans_without(native, table.name, divided)
    splits = list(packed_splits(builder, plans, table.options.source_split_target_size_bytes))
    if not are_few(splits):
        return None
    names = _needed(read)
    size = sum(plan.size_bytes for plan in plans)
    df = frame_of_tasks(spark, key_of(table), splits, struct_of(table.schema, names), read.predicate, size)
    return with_nulls(df, table.schema, read.columns)


def _needed(read: SnapshotRead) -> list[str]:
    """Return the needed columns, at least one: a read without columns has no rows."""
    needed = list(read.columns) if read.needed is None else [name for name in read.columns if name in read.needed]
    return needed or list(read.columns[:1])


def _by_data_source(
    spark: SparkSession, table: DynamicTable, read: SnapshotRead, options: Mapping[str, str]
) -> DataFrame:
    """Return all columns, those that nobody needs as nulls: Spark does not tell a Python source what it needs."""
    names = _needed(read)
    at = {statement_options.TAG_NAME: read.tag} if read.tag is not None else {}
    df = fresh_frame(spark, struct_of(table.schema, names), {**statement_options.options_of(table), **at, **options})
    return with_nulls(df, table.schema, read.columns)
