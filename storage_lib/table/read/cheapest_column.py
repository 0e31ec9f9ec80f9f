"""The column to read if only the number of rows is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.types as pt

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

__all__ = ["cheapest_column"]

_UNKNOWN_WIDTH = 1 << 16


def cheapest_column(schema: TableSchema) -> str:
    """Return the column that is cheapest to read for counting rows: the narrowest type, preferably of fixed width."""
    return min(schema.fields, key=lambda field: _width(field.type.arrow)).name


def _width(arrow: Any) -> int:
    fixed = pt.is_primitive(arrow) or pt.is_decimal(arrow)
    return int(arrow.bit_width) if fixed else _UNKNOWN_WIDTH
