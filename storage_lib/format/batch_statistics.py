"""Statistics of a file's columns, computed from its batches, for formats whose library returns none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from storage_lib.schema.filter.column_stats import ColumnStats, stats_of_column


class BatchStatistics:
    """Statistics of every scalar column; nested columns have none."""

    def __init__(self, schema: pa.Schema) -> None:
        self._groups: dict[str, list[ColumnStats]] = {
            field.name: [] for field in schema if not pa.types.is_nested(field.type)
        }

    def add(self, rows: pa.Table) -> None:
        """Add rows to the statistics."""
        for name, groups in self._groups.items():
            # Fold at once, so that a long file needs no more memory than a short one.
            groups[:] = [over_groups([*groups, stats_of_column(rows.column(name))])]

    def result(self) -> Mapping[str, ColumnStats]:
        """Return the statistics of all rows, by column."""
        return {name: over_groups(groups) for name, groups in self._groups.items()}


def over_groups(groups: Sequence[ColumnStats]) -> ColumnStats:
    """Combine the statistics of parts to those of the whole."""
    null_counts = [group.null_count for group in groups]
    row_count = sum(group.row_count for group in groups)
    null_count = None if None in null_counts else sum(count for count in null_counts if count is not None)
    # A group of only nulls has no bounds and is ignored; any other group without bounds leaves the file without.
    valued = [group for group in groups if group.null_count is None or group.null_count < group.row_count]
    if not valued or any(group.min is None or group.max is None for group in valued):
        return ColumnStats(min=None, max=None, null_count=null_count, row_count=row_count)
    low: Any = min(group.min for group in valued)
    high: Any = max(group.max for group in valued)
    return ColumnStats(min=low, max=high, null_count=null_count, row_count=row_count)
