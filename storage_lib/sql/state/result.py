"""Results of statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.sql.state.spark_words import errors_in_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from storage_lib.spark.verbs.table_stream import TableStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a statement: rows, a running stream, or neither.

    ``message`` is one line of text. ``rows`` are the output of DESCRIBE, SHOW and similar statements; ``dataframe`` is
    the lazy result of a query; ``stream`` is the stream that a streaming INSERT has started. ``snapshot_id`` is the
    snapshot of a write (None if it wrote nothing), and ``row_count`` the number of its records.
    """

    message: str = ""
    rows: pa.Table | None = None
    dataframe: DataFrame | None = None
    stream: TableStream | None = None
    snapshot_id: int | None = None
    row_count: int | None = None

    @property
    def has_rows(self) -> bool:
        """Whether ``to_arrow`` returns any columns."""
        return self.rows is not None or self.dataframe is not None

    def to_arrow(self) -> pa.Table:
        """Return all rows; a query is computed at each call. Without rows, returns a table without columns.

        Raises ``InvalidInputError`` for a query over a stream, and the errors of the read.
        """
        if self.rows is not None:
            return self.rows
        if self.dataframe is None:
            return pa.table({})
        if self.dataframe.isStreaming:
            message = (
                "this query reads a stream, which never ends: write it into a table by INSERT INTO, use "
                "result.dataframe.writeStream, or SET 'execution.runtime-mode' = 'batch' to read one snapshot"
            )
            raise InvalidInputError(message)
        with errors_in_words():
            return self.dataframe.toArrow()


def rows_of(columns: tuple[str, ...], rows: list[tuple[str | None, ...]]) -> pa.Table:
    """Return rows of text as a table with these columns."""
    return pa.table({name: pa.array([row[index] for row in rows], pa.string()) for index, name in enumerate(columns)})
