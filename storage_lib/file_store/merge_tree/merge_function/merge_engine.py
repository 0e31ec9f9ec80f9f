"""A table's options -> its merge function."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE, Deduplicate
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.schema.table_options import SortOrder, TableOptions
from storage_lib.schema.table_schema import TableSchema


def merge_function_of(table: str, schema: TableSchema, options: TableOptions) -> MergeFunction:
    """What merges versions of a key in this table; ``table`` is its name in messages.

    Raises ``InvalidInputError`` naming the option, the column and the remedy.
    """
    order = _sequence_order(table, schema, options)
    return Deduplicate(order=order) if order.fields else DEDUPLICATE


def _sequence_order(table: str, schema: TableSchema, options: TableOptions) -> SequenceOrder:
    names = [each.name for each in schema.fields]
    for name in options.sequence_field:
        if name not in names:
            message = (
                f"table {table}: option sequence.field names {name!r}, which is no column; the columns are "
                f"{', '.join(names)}"
            )
            raise InvalidInputError(message)
        if name in schema.primary_keys:
            message = (
                f"table {table}: option sequence.field names {name!r}, which is in the primary key "
                f"({', '.join(schema.primary_keys)}), so all versions of a row have the same; name a column that "
                "tells them apart"
            )
            raise InvalidInputError(message)
    return SequenceOrder(
        fields=options.sequence_field, descending=options.sequence_field_sort_order is SortOrder.DESCENDING
    )
