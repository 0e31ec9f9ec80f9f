"""Bounds of the keys in each row group of a file that is sorted by key, from the statistics of its footer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal

from storage_lib.file_store.data_file.comparable_key import ComparableKey, comparable_value
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.types.data_types import DataType, TypeRoot

_PYTHON_TYPES: Mapping[TypeRoot, type] = {
    TypeRoot.BOOLEAN: bool,
    TypeRoot.TINYINT: int,
    TypeRoot.SMALLINT: int,
    TypeRoot.INTEGER: int,
    TypeRoot.BIGINT: int,
    TypeRoot.DECIMAL: Decimal,
    TypeRoot.DATE: date,
    TypeRoot.TIME: time,
    TypeRoot.TIMESTAMP: datetime,
    TypeRoot.TIMESTAMP_LTZ: datetime,
    TypeRoot.CHAR: str,
    TypeRoot.VARCHAR: str,
    TypeRoot.BINARY: bytes,
    TypeRoot.VARBINARY: bytes,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupKeys:
    """Keys of one row group: none is before ``low``, and none has first columns after ``high``.

    Both have as many of the key's first columns as the statistics bound: the second column only if the first has one
    value in the row group. An empty ``low`` bounds nothing, and neither does an empty ``high``.
    """

    low: ComparableKey
    high: ComparableKey
    row_count: int


def row_group_keys(
    statistics: Mapping[str, ColumnStats], columns: Iterable[tuple[str, DataType]], row_count: int
) -> RowGroupKeys:
    """Return the bounds of one row group; ``columns`` are the key's columns in the file, and their types.

    Floats bound nothing: statistics leave out NaN, and the signs of zeros are not reliable. Neither do values of
    another Python type, from files whose columns lack the annotation of their type.
    """
    low: list[int | str | bytes | Decimal] = []
    high: list[int | str | bytes | Decimal] = []
    for name, data_type in columns:
        of_column = statistics.get(name)
        wanted = _PYTHON_TYPES.get(data_type.root)
        if of_column is None or wanted is None or type(of_column.min) is not wanted:
            break
        if of_column.max is None:
            break
        low.append(comparable_value(of_column.min, data_type))
        high.append(comparable_value(of_column.max, data_type))
        if low[-1] != high[-1]:
            break
    return RowGroupKeys(low=tuple(low), high=tuple(high), row_count=row_count)


def groups_in_range(groups: Sequence[RowGroupKeys], key_range: KeyRange) -> range:
    """Return the consecutive row groups of a file outside of which no key of the range is."""
    may_match = [index for index, group in enumerate(groups) if _may_match(group, key_range)]
    return range(may_match[0], may_match[-1] + 1) if may_match else range(0)


def _may_match(group: RowGroupKeys, key_range: KeyRange) -> bool:
    low, high = key_range.low, key_range.high
    is_before = low is not None and group.high < low[: len(group.high)]
    return not is_before and (high is None or group.low < high)
