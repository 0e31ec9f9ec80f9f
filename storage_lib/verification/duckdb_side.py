"""The rows of a query of DuckDB as a side of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pyarrow as pa

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError
from storage_lib.verification.column_kind import ColumnKind, kind_of_arrow
from storage_lib.verification.compared_rows import KeyBounds
from storage_lib.verification.sql_text import bare_query, quoted

_ROWS_PER_BATCH = 65_536
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": "1GB",
    "autoinstall_known_extensions": "false",
}


class DuckDbSide:
    """Runs the query for each read: it must return the same rows each time, in any order."""

    position = "its rows of now"

    def __init__(self, query: str) -> None:
        with importing_for("a comparison with a query of DuckDB", InvalidInputError):
            import duckdb
        self.name = "the query"
        self._errors = duckdb.Error
        self._connection = duckdb.connect(config=_SETTINGS)
        self._query = bare_query(query)
        schema = self._read(f"SELECT * FROM ({self._query}) LIMIT 0", []).schema
        self.kinds: Mapping[str, ColumnKind | None] = {field.name: kind_of_arrow(field.type) for field in schema}

    def batches(self, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None) -> Iterator[pa.RecordBatch]:
        """Read the columns of ``forms`` of the rows within the bounds."""
        ends = () if bounds is None else ((">=", bounds.low), ("<=", bounds.high))
        given = [(operator, value) for operator, value in ends if value is not None]
        column = "" if bounds is None else quoted(bounds.column)
        parts = [
            f"{column if isinstance(value, int) else f'{column}::VARCHAR'} {operator} ?" for operator, value in given
        ]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        columns = ", ".join(map(quoted, forms))
        with self._reporting():
            yield from self._read(f"SELECT {columns} FROM ({self._query}){where}", [value for _, value in given])

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _read(self, query: str, values: list[int | str]) -> pa.RecordBatchReader:
        with self._reporting():
            return self._connection.sql(query, params=values).to_arrow_reader(_ROWS_PER_BATCH)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except (self._errors, pa.ArrowException, OSError) as error:
            message = f"DuckDB can't run the query: {error}"
            raise InvalidInputError(message) from error
