"""Statistics of a data file's columns as Iceberg stores them in manifests, from those that the file was committed with.

Readers leave a file out if its bounds, or its counts of nulls, exclude a filter. They count and bound all rows of the
file, also those that the view hides. What could be wrong for some reader is left out, and such a reader then reads the
file: columns within others, types whose stored values differ from what SQL compares (CHAR), bounds of a column with
NaN, and text that engines order in different ways.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from storage_lib.file_store.data_file.comparable_key import EPOCH, EPOCH_DAY, EPOCH_UTC, MICROSECOND
from storage_lib.iceberg.encode.partition_record import unscaled
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.table_schema import DataField
from storage_lib.schema.types.data_types import DataType, TypeRoot

COLUMNS_MAX = 100
"""Columns with statistics, as of Iceberg's own writers: manifests of wide tables would become large."""
_MICROS = 6
_FLOATING = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
FIRST_SURROGATE = "\ud800"
"""From there on, the order of code points differs from that of UTF-16, by which readers in Java may compare."""


def column_metrics(fields: Sequence[DataField], stats: Mapping[str, ColumnStats]) -> dict[str, list[dict[str, Any]]]:
    """Return the fields of a manifest's entry that describe columns; ``stats`` are of the file, by name.

    REQUIRES statistics that this library has computed: those of others may have bounds in spite of NaN.
    """
    found: dict[str, list[dict[str, Any]]] = {}

    def add(name: str, of: DataField, value: object) -> None:
        found.setdefault(name, []).append({"key": of.id, "value": value})

    for each in fields[:COLUMNS_MAX]:
        known = stats.get(each.name)
        if known is None or each.type.root not in _STORED:
            continue
        if known.null_count is not None:
            add("value_counts", each, known.row_count)
            add("null_value_counts", each, known.null_count)
        bounds = _bounds(known, each.type)
        if bounds is not None:
            add("lower_bounds", each, bounds[0])
            add("upper_bounds", each, bounds[1])
        if each.type.root in _FLOATING and known.covers_nan and bounds is not None:
            add("nan_value_counts", each, 0)
    return found


def _bounds(stats: ColumnStats, of: DataType) -> tuple[bytes, bytes] | None:
    """Return both bounds as bytes; None if one is not known, or not sure."""
    low, high = stats.min, stats.max
    if low is None or high is None:
        return None
    if of.root in _FLOATING and not stats.covers_nan:
        return None
    if of.root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ) and (of.precision or 0) > _MICROS:
        return None
    if isinstance(low, str) and any(letter >= FIRST_SURROGATE for letter in low + high):
        # Below such a bound no value has them where it counts.
        return None
    stored = _STORED[of.root]
    try:
        return stored(low, of), stored(high, of)
    except (struct.error, OverflowError, ValueError):
        return None


def _packed(form: str) -> Callable[[Any, DataType], bytes]:
    return lambda value, _: struct.pack(form, value)


def _decimal(value: Decimal, of: DataType) -> bytes:
    whole = unscaled(value, of.scale or 0)
    return whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, "big", signed=True)


def _date(value: date, _: DataType) -> bytes:
    return struct.pack("<i", (value - EPOCH_DAY).days)


def _moment(value: datetime, _: DataType) -> bytes:
    micros = (value - (EPOCH if value.tzinfo is None else EPOCH_UTC)) // MICROSECOND
    return struct.pack("<q", micros)


_INT = _packed("<i")
_STORED: Mapping[TypeRoot, Callable[[Any, DataType], bytes]] = {
    TypeRoot.BOOLEAN: _packed("<?"),
    TypeRoot.TINYINT: _INT,
    TypeRoot.SMALLINT: _INT,
    TypeRoot.INTEGER: _INT,
    TypeRoot.BIGINT: _packed("<q"),
    TypeRoot.FLOAT: _packed("<f"),
    TypeRoot.DOUBLE: _packed("<d"),
    TypeRoot.DATE: _date,
    TypeRoot.DECIMAL: _decimal,
    TypeRoot.VARCHAR: lambda value, _: value.encode(),
    TypeRoot.VARBINARY: lambda value, _: bytes(value),
    TypeRoot.TIMESTAMP: _moment,
    TypeRoot.TIMESTAMP_LTZ: _moment,
}
"""Types with statistics, and their values as bytes (https://iceberg.apache.org/spec/, appendix D)."""
