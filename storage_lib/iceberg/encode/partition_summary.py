"""Summaries of the partitions in a manifest (``field_summary``), by which readers leave out whole manifests.

A reader takes a summary without bounds for one of nulls only. So a manifest has no summaries at all if those of one
field could be wrong for some reader: NaN, which engines order in different ways, text that they order in different
ways, and types whose stored values differ from what SQL compares (CHAR).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from storage_lib.iceberg.encode.column_metrics import FIRST_SURROGATE
from storage_lib.iceberg.encode.partition_record import avro_name
from storage_lib.schema.table_schema import TableSchema
from storage_lib.schema.types.data_types import TypeRoot


def partition_summaries(
    schema: TableSchema, partitions: Sequence[Mapping[str, object]]
) -> list[Mapping[str, object]] | None:
    """Return a summary for each partition column; ``partitions`` are records as Avro stores them.

    None for a table without partitions, and if something is not sure.
    """
    summaries: list[Mapping[str, object]] = []
    for each in schema.partition_fields:
        name = avro_name(each.name)
        if each.type.root not in _STORED or not all(name in record for record in partitions):
            return None
        values: list[Any] = [record[name] for record in partitions]
        there = {value for value in values if value is not None}
        if any(_is_unsure(value) for value in there):
            return None
        stored = _STORED[each.type.root]
        ordered = sorted(there, key=_unscaled if each.type.root is TypeRoot.DECIMAL else None)
        is_floating = each.type.root in _FLOATING
        summaries.append(
            {
                "contains_null": len(values) > sum(value is not None for value in values),
                "contains_nan": False if is_floating else None,
                "lower_bound": stored(_lowest(ordered[0])) if ordered else None,
                "upper_bound": stored(_highest(ordered[-1])) if ordered else None,
            }
        )
    return summaries or None


def _is_unsure(value: Any) -> bool:
    if isinstance(value, str):
        return any(letter >= FIRST_SURROGATE for letter in value)
    return bool(value != value)  # noqa: PLR0124  NaN


def _lowest(value: Any) -> Any:
    """Return -0.0 for 0.0, which Java orders after it."""
    return -0.0 if isinstance(value, float) and not value else value


def _highest(value: Any) -> Any:
    return 0.0 if isinstance(value, float) and not value else value


def _unscaled(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


def _decimal(value: bytes) -> bytes:
    """Return a decimal with as few bytes as it needs: Avro pads it."""
    whole = _unscaled(value)
    return whole.to_bytes((whole if whole >= 0 else ~whole).bit_length() // 8 + 1, "big", signed=True)


def _packed(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


_FLOATING = (TypeRoot.FLOAT, TypeRoot.DOUBLE)
_INT, _LONG = _packed("<i"), _packed("<q")
_STORED: Mapping[TypeRoot, Callable[[Any], bytes]] = {
    TypeRoot.BOOLEAN: _packed("<?"),
    TypeRoot.TINYINT: _INT,
    TypeRoot.SMALLINT: _INT,
    TypeRoot.INTEGER: _INT,
    TypeRoot.BIGINT: _LONG,
    TypeRoot.FLOAT: _packed("<f"),
    TypeRoot.DOUBLE: _packed("<d"),
    TypeRoot.DATE: _INT,
    TypeRoot.DECIMAL: _decimal,
    TypeRoot.VARCHAR: str.encode,
    TypeRoot.VARBINARY: bytes,
    TypeRoot.TIMESTAMP: _LONG,
    TypeRoot.TIMESTAMP_LTZ: _LONG,
}
"""Values of a partition, as Avro stores them, in Iceberg's form of single values (its specification, appendix D)."""
