"""Refusals of statements that would make a materialized table differ from its query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable


def refuse_row_change(table: DynamicTable, verb: str) -> None:
    """Raise ``InvalidInputError`` if the table is materialized, before the statement ``verb`` computes rows for it."""
    if table.definition is not None:
        message = (
            f"table {table.name} is a materialized table: its rows are the answer of its query, so {verb} is refused. "
            f"Change the tables that it reads and run ALTER MATERIALIZED TABLE {table.name} REFRESH, or change its "
            f"query: ALTER MATERIALIZED TABLE {table.name} AS SELECT ..."
        )
        raise InvalidInputError(message)


def refuse_column_change(table: DynamicTable) -> None:
    """Raise ``InvalidInputError`` if the table is materialized, so that its query gives its columns and its key."""
    if table.definition is not None:
        message = (
            f"table {table.name} is a materialized table: its query gives its columns. Change the query: ALTER "
            f"MATERIALIZED TABLE {table.name} AS SELECT ..."
        )
        raise InvalidInputError(message)
