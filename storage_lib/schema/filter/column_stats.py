"""Statistics of a column in a file or row group, and their encoding in metadata (SimpleStats, docs/format.md, 1.8).

Bounds are safe: no value is below ``min`` or above ``max``, though neither needs to occur. None is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.encoding.binary_row import decode_bound, encode_row
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot

TRUNCATED_LENGTH = 16
"""Maximum length of a bound in characters or bytes (``metadata.stats-mode = truncate(16)``)."""

_FLOATING = frozenset({TypeRoot.FLOAT, TypeRoot.DOUBLE})
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnStats:
    """Bounds (Python values as in ``decode_row``), nulls and rows of a column.

    ``covers_nan``: a column with both bounds has no NaN. Other writers compute bounds without regard to NaN.
    """

    min: Any
    max: Any
    null_count: int | None
    row_count: int
    covers_nan: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleStats:
    """Minimum, maximum and null count per covered column; the rows are serialized BinaryRows."""

    min_values: bytes
    max_values: bytes
    null_counts: tuple[int | None, ...]


def collect_stats(rows: pa.RecordBatch | pa.Table, fields: Sequence[DataField]) -> list[ColumnStats]:
    """Compute the statistics of the columns that ``fields`` name, in their order."""
    return [stats_of_column(rows.column(field.name)) for field in fields]


def encode_stats(
    stats: Sequence[ColumnStats], fields: Sequence[DataField], *, truncate: int | None = TRUNCATED_LENGTH
) -> SimpleStats:
    """Serialize statistics of columns; truncate long strings to ``truncate`` characters or bytes (None: do not).

    A truncated maximum is rounded up, so that both remain bounds. Raises ``InvalidInputError`` for a bound that is not
    of its column's type.
    """
    types = [field.type for field in fields]
    bounds = [_bounds(each, type_, truncate) for each, type_ in zip(stats, types, strict=True)]
    lows, highs = [low for low, _ in bounds], [high for _, high in bounds]
    return SimpleStats(
        min_values=encode_row(lows, types),
        max_values=encode_row(highs, types),
        null_counts=tuple(each.null_count for each in stats),
    )


def decode_stats(
    stats: SimpleStats, fields: Sequence[DataField], row_count: int, *, covers_nan: bool = False
) -> Mapping[str, ColumnStats]:
    """Return statistics by column name; ``fields`` are the covered columns, ``row_count`` the rows of the file.

    ``covers_nan``: this library has computed them.

    Raises ``CorruptFileError`` if ``stats`` don't cover exactly these columns.
    """
    types = [field.type for field in fields]
    lows = decode_bound(stats.min_values, types, upper=False)
    highs = decode_bound(stats.max_values, types, upper=True)
    nulls: Sequence[int | None] = stats.null_counts
    if len(nulls) != len(fields):
        nulls = [None] * len(fields)  # some writers omit null counts
    return {
        each.name: ColumnStats(min=low, max=high, null_count=count, row_count=row_count, covers_nan=covers_nan)
        for each, low, high, count in zip(fields, lows, highs, nulls, strict=True)
    }


def stats_of_column(column: pa.Array | pa.ChunkedArray) -> ColumnStats:
    """Compute the statistics of a scalar column."""
    nulls, rows = column.null_count, len(column)
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        # Engines disagree on whether NaN is larger than all values, so no bounds suit all of them.
        return ColumnStats(min=None, max=None, null_count=nulls, row_count=rows)
    try:
        extremes = pc.min_max(column)
        low, high = extremes["min"].as_py(), extremes["max"].as_py()
    except (OverflowError, ValueError):
        # Python can't represent this date or nanosecond.
        low = high = None
    return ColumnStats(min=low, max=high, null_count=nulls, row_count=rows, covers_nan=True)


def _bounds(stats: ColumnStats, data_type: DataType, length: int | None) -> tuple[Any, Any]:
    low, high = stats.min, stats.max
    if low is None or high is None:
        return low, high
    if data_type.root in _FLOATING:
        # Zero has two signs; bounds that include one must include both.
        return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
    if length is None or not isinstance(low, str | bytes):
        return low, high
    raised = _raised(high, length)
    return (None, None) if raised is None else (low[:length], raised)


def _raised(value: str | bytes, length: int) -> str | bytes | None:
    """Return a value of at most ``length`` that is not less than ``value``; None if impossible."""
    if len(value) <= length:
        return value
    if isinstance(value, bytes):
        for end in range(length, 0, -1):
            if value[end - 1] < 0xFF:
                return value[: end - 1] + bytes((value[end - 1] + 1,))
        return None
    for end in range(length, 0, -1):
        following = ord(value[end - 1]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _CODE_POINT_MAX:
            return value[: end - 1] + chr(following)
    return None
