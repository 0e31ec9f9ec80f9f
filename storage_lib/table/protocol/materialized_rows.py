"""Only refreshes change the rows of a materialized table, and only a new query changes its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage_lib.errors import InvalidInputError
from storage_lib.schema.options.materialized_table import CATALOGS_OPTION, COLUMNS_OPTION, QUERY_OPTION, SETTINGS_OPTION

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema
    from storage_lib.table.protocol.table_context import TableContext

_OF_COLUMNS = (QUERY_OPTION, COLUMNS_OPTION, CATALOGS_OPTION, SETTINGS_OPTION)


def refuse_user_rows(table: TableContext) -> None:
    """Raise ``InvalidInputError`` if the table is materialized: its rows are the answer of its query."""
    if table.options.materialized_query is not None:
        message = (
            f"table {table.name} is a materialized table: its rows are the answer of its query, so they can't be "
            "written or dropped. Change its sources and refresh it, or change its query with "
            "ALTER MATERIALIZED TABLE ... AS SELECT (storage_lib.spark.set_query)"
        )
        raise InvalidInputError(message)


def refuse_user_columns(table: str, before: TableSchema, after: TableSchema) -> None:
    """Raise ``InvalidInputError`` if the columns of a materialized table change without its query."""
    query = before.options.get(QUERY_OPTION)
    if query is None or any(before.options.get(each) != after.options.get(each) for each in _OF_COLUMNS):
        return
    if [(each.name, each.type) for each in before.fields] != [(each.name, each.type) for each in after.fields]:
        message = (
            f"table {table} is a materialized table: its columns are those of its query. Change the query with ALTER "
            "MATERIALIZED TABLE ... AS SELECT (storage_lib.spark.set_query)"
        )
        raise InvalidInputError(message)
