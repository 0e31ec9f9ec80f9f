"""Rows of files that have to be merged, read by Spark's own readers: a job of its own merges the keys only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from storage_lib.spark.reading.frame_by_keys import FrameByKeys
from storage_lib.spark.reading.keys_merge import known_left_out, left_out_by_keys
from storage_lib.spark.reading.native_groups import NativeGroup, frame_of, native_groups
from storage_lib.spark.reading.united_frames import united
from storage_lib.spark.reading.without_rows import ROWS_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.table.builders.read_builder import ReadBuilder
    from storage_lib.table.dynamic_table import DynamicTable
    from storage_lib.table.read.left_out_rows import LeftOutRows


def marked_frame(
    spark: SparkSession,
    table: DynamicTable,
    builder: ReadBuilder,
    merged: Plan,
    columns: Sequence[str],
    needed: Collection[str],
    *,
    may_merge_keys: bool,
    remembers: bool = True,
) -> FrameByKeys | None:
    """Return ``columns`` of the rows of a plan; those that are not ``needed`` are null. None: merge whole rows instead.

    ``may_merge_keys``: find the replaced rows if they are not remembered; ``remembers`` as for ``left_out_by_keys``.
    Raises as ``ReadBuilder.read_split``.
    """
    left_out: Mapping[str, LeftOutRows] | None = known_left_out(table, merged)
    if left_out is None and not may_merge_keys:
        return None
    groups = marked_groups(spark, table, builder, merged, columns, needed)
    if groups is None:
        return None
    if left_out is None:
        left_out = left_out_by_keys(spark, table, builder, merged, remembers=remembers)
    frames = [frame_of(spark, builder, table.schema, group, table.address.options, left_out) for group in groups]
    return FrameByKeys(united(frames), len(merged.entries), merged.size_bytes)


def marked_groups(
    spark: SparkSession,
    table: DynamicTable,
    builder: ReadBuilder,
    merged: Plan,
    columns: Sequence[str],
    needed: Collection[str],
) -> list[NativeGroup] | None:
    """Return how Spark reads the files of a plan while it leaves rows out; None if it can't read all of them."""
    names = {entry.file.file_name for entry in merged.entries}
    # Other writers might use a name in two buckets.
    if not builder.tells_standing_rows(merged) or len(names) < len(merged.entries) or merged.row_count > ROWS_MAX:
        return None
    files = builder.unmerged_files(merged)
    groups = native_groups(spark, builder, files, columns, needed, table.address.options, leaves_rows_out=True)
    return groups if sum(len(group.files) for group in groups) == len(files) else None
