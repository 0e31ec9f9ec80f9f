"""Convert the statistics of a file that was written under another schema to the table's current columns.

Columns are found by id. A column added later is null in every row of the file. Bounds are cast as the values are; if
the cast does not preserve order, or fails, they are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_types import DataType, TypeRoot

_NUMBERS = frozenset(
    {
        TypeRoot.TINYINT,
        TypeRoot.SMALLINT,
        TypeRoot.INTEGER,
        TypeRoot.BIGINT,
        TypeRoot.FLOAT,
        TypeRoot.DOUBLE,
        TypeRoot.DECIMAL,
    }
)
_SAME_ORDER = (
    _NUMBERS,
    frozenset({TypeRoot.CHAR, TypeRoot.VARCHAR}),
    frozenset({TypeRoot.BINARY, TypeRoot.VARBINARY}),
)


def evolved_stats(
    stats: Mapping[str, ColumnStats], stored: TableSchema, current: TableSchema, row_count: int
) -> dict[str, ColumnStats]:
    """Return statistics by current names; the keys of ``stats`` are names of ``stored``. Missing keys mean unknown."""
    by_id = {each.id: each for each in stored.fields}
    found: dict[str, ColumnStats] = {}
    for field in current.fields:
        was = by_id.get(field.id)
        if was is None:
            found[field.name] = ColumnStats(min=None, max=None, null_count=row_count, row_count=row_count)
        elif was.name in stats:
            found[field.name] = _converted(stats[was.name], was.type, field.type)
    return found


def _converted(stats: ColumnStats, stored: DataType, wanted: DataType) -> ColumnStats:
    if stored.with_nullable(nullable=True) == wanted.with_nullable(nullable=True):
        return stats
    low, high = _bound(stats.min, stored, wanted), _bound(stats.max, stored, wanted)
    if low is None or high is None:
        low = high = None
    return replace(stats, min=low, max=high)


def _bound(value: Any, stored: DataType, wanted: DataType) -> Any:
    if value is None or not any(stored.root in family and wanted.root in family for family in _SAME_ORDER):
        return None
    try:
        return pa.scalar(value, stored.arrow).cast(wanted.arrow).as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, ValueError):
        return None
