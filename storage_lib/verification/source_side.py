"""Opens the side that a table is compared with, by how it is named."""

from __future__ import annotations

from storage_lib.errors import InvalidInputError
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.verification.compared_rows import ComparedRows
from storage_lib.verification.duckdb_side import DuckDbSide
from storage_lib.verification.parquet_side import ParquetSide
from storage_lib.verification.postgres_side import SCHEMES, PostgresSide
from storage_lib.verification.table_side import TableSide


def opened_source(
    table: str, against: DynamicTable | str | None, *, relation: str | None, query: str | None
) -> ComparedRows:
    """Open another table, ``postgresql://...`` (``relation`` or ``query``), a path of Parquet files, or DuckDB's query.

    ``table`` is the name of the table that is compared. Raises ``InvalidInputError`` for another combination.
    """
    if isinstance(against, str) and against.startswith(SCHEMES):
        if query is not None and relation is not None:
            message = f"table {table}: give a relation of the database or a query, not both"
            raise InvalidInputError(message)
        own_name = table.partition("$")[0].rpartition(".")[2]
        return PostgresSide(against, relation=None if query is not None else relation or own_name, query=query)
    if relation is not None:
        message = f"table {table}: relation {relation} is a table of PostgreSQL; compare with postgresql://..."
        raise InvalidInputError(message)
    if against is None:
        if query is None:
            message = f"table {table}: give what to compare it with: against (--against), or a query (--query)"
            raise InvalidInputError(message)
        return DuckDbSide(query)
    if query is not None:
        message = (
            f"table {table}: a query is one of PostgreSQL (against postgresql://...) or of DuckDB (without against, "
            "such as FROM 'files/*.parquet')"
        )
        raise InvalidInputError(message)
    return ParquetSide(against) if isinstance(against, str) else TableSide(against)
