"""Values for the NOT NULL columns of deletions whose row nobody knows, because files can't hold null there.

No reader of rows sees them: the newest version of the key is the deletion.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema


def with_stand_ins(rows: pa.Table, kinds: pa.Array, schema: TableSchema) -> pa.Table:
    """Return rows (the table's columns, kinds int8) of which those that retract have a value in NOT NULL columns."""
    is_retract = retracts(kinds)
    if not is_retract.any():
        return rows
    for place, field in enumerate(schema.fields):
        column = rows.column(place)
        if field.type.nullable or not column.null_count or field.name in schema.primary_keys:
            continue
        value = pa.array([_stand_in(column.type)], column.type)[0]
        lacks = pc.and_(column.is_null(), pa.array(is_retract))
        rows = rows.set_column(place, rows.schema.field(place), pc.if_else(lacks, value, column))
    return rows


def _stand_in(of: pa.DataType) -> Any:
    """Return the value that a type has for nothing: zero, an empty text or list, the first moment."""
    if pa.types.is_struct(of):
        return {each.name: _stand_in(each.type) for each in of}
    if pa.types.is_list(of) or pa.types.is_map(of):
        return []
    if pa.types.is_string(of):
        return ""
    if pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of):
        return bytes(of.byte_width if pa.types.is_fixed_size_binary(of) else 0)
    if pa.types.is_boolean(of):
        return False
    return Decimal(0) if pa.types.is_decimal(of) else 0
