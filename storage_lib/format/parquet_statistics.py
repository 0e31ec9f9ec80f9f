"""Column statistics of a Parquet footer that are reliable enough to skip files or row groups.

A bound is dropped (None) if it is not reliable: no statistics, values that Python can't represent, and
floating point, whose statistics do not include NaN.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from storage_lib.format.batch_statistics import over_groups
from storage_lib.schema.filter.column_stats import ColumnStats

FLOATING = frozenset({"FLOAT", "DOUBLE"})


def column_indices(metadata: pq.FileMetaData) -> dict[str, int]:
    """Return the index of each scalar column in the file, by name; nested columns have no statistics."""
    paths = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
    if not any("." in path for path in paths):
        return {path: index for index, path in enumerate(paths)}
    found: dict[str, int] = {}
    start = 0
    for field in metadata.schema.to_arrow_schema():
        if not pa.types.is_nested(field.type):
            found[field.name] = start
        start += _leaf_count(field.type)
    return found


def _leaf_count(type_: pa.DataType) -> int:
    if not pa.types.is_nested(type_):
        return 1
    return sum(_leaf_count(type_.field(index).type) for index in range(type_.num_fields))


def row_group_statistics(
    group: pq.RowGroupMetaData, columns: Mapping[str, int], *, trusted_floats: frozenset[str] = frozenset()
) -> dict[str, ColumnStats]:
    """Return the statistics of columns, given by name and index; ``trusted_floats`` are known to have no NaN."""
    return {name: _column_statistics(group.column(index), name in trusted_floats) for name, index in columns.items()}


def file_statistics(metadata: pq.FileMetaData, *, trusted_floats: frozenset[str]) -> dict[str, ColumnStats]:
    """Return the statistics of every column over all row groups."""
    columns = column_indices(metadata)
    groups = [
        row_group_statistics(metadata.row_group(group), columns, trusted_floats=trusted_floats)
        for group in range(metadata.num_row_groups)
    ]
    if len(groups) == 1:
        return groups[0]
    return {name: over_groups([group[name] for group in groups]) for name in columns}


def _column_statistics(column: pq.ColumnChunkMetaData, trusted_float: bool) -> ColumnStats:  # noqa: FBT001  private
    statistics = column.statistics
    rows = column.num_values
    if statistics is None:
        return ColumnStats(min=None, max=None, null_count=None, row_count=rows)
    low, high = None, None
    if statistics.has_min_max and (trusted_float or column.physical_type not in FLOATING):
        try:
            low, high = statistics.min, statistics.max
        except (OverflowError, ValueError):
            # Dates and timestamps outside Python's years 1 to 9999.
            low, high = None, None
    null_count = statistics.null_count if statistics.has_null_count else None
    return ColumnStats(min=low, max=high, null_count=null_count, row_count=rows)
