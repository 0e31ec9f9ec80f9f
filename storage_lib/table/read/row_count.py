"""Counts rows by file metadata if that is exact, and else chooses the column to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.types as pt

if TYPE_CHECKING:
    from storage_lib.file_store.planning.plan import Plan
    from storage_lib.schema.table_schema import TableSchema

__all__ = ["cheapest_column", "exact_count"]

_UNKNOWN_WIDTH = 1 << 16


def exact_count(schema: TableSchema, plan: Plan) -> int | None:
    """Return the number of rows by file metadata alone; None if files have to be read.

    ``plan`` is that of a read without a filter. Rows of keyed and counted tables have to be merged to be counted.
    """
    files = [entry.file for entry in plan.entries]
    if not schema.is_append_only or any(
        file.deletion_file or file.delete_row_count != 0 or file.write_cols is not None for file in files
    ):
        return None
    return plan.row_count


def cheapest_column(schema: TableSchema) -> str:
    """Return the column that is cheapest to read for counting rows: the narrowest type, preferably of fixed width."""
    return min(schema.fields, key=lambda field: _width(field.type.arrow)).name


def _width(arrow: Any) -> int:
    fixed = pt.is_primitive(arrow) or pt.is_decimal(arrow)
    return int(arrow.bit_width) if fixed else _UNKNOWN_WIDTH
