"""Conversion of pandas and Polars frames, DuckDB relations and lists of dicts to Arrow."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import polars as pl
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.table.input.input_rows import Rows

__all__ = ["Frame", "arrow_rows"]


@runtime_checkable
class ArrowStream(Protocol):
    """Any object with Arrow's PyCapsule interface for streams, for example a frame or a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with the stream."""
        ...


Frame: TypeAlias = Rows | ArrowStream | Sequence[Mapping[str, object]]
"""Columns by name: Arrow data, a pandas or Polars frame, a DuckDB relation, a list of dicts with equal keys."""


def arrow_rows(table: str, rows: object, columns: pa.Schema) -> Rows:
    """Convert ``rows``, a ``Frame``, to Arrow, without fetching the batches of a stream (a reader, a relation) yet.

    An empty list becomes an empty table with ``columns``, the table's columns. Named levels of a pandas index become
    columns, an unnamed index is dropped, and NaN in pandas is null. Raises ``InvalidInputError`` naming ``table`` for
    any other object and for values that Arrow cannot represent.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return rows
    try:
        if isinstance(rows, pl.DataFrame):
            return rows.to_arrow()
        # A caller with a frame has imported it; while another thread is importing it, it has no such class yet.
        frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
        if frame is not None and isinstance(rows, frame):
            return _of_pandas(rows)
        if isinstance(rows, ArrowStream):
            return pa.RecordBatchReader.from_stream(rows)
        if isinstance(rows, Sequence) and not isinstance(rows, str | bytes):
            return _of_mappings(table, rows) if rows else columns.empty_table()
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        message = f"table {table}: the {type(rows).__name__} does not convert to Arrow: {error}"
        raise InvalidInputError(message) from error
    remedy = "; call collect() first" if isinstance(rows, pl.LazyFrame) else ""
    message = (
        f"table {table}: rows come as an Arrow table, batch or reader, a pandas or Polars frame, or a list of dicts, "
        f"not as {type(rows).__name__}{remedy}"
    )
    raise InvalidInputError(message)


def _of_pandas(frame: Any) -> pa.Table:
    levels = [name for name in frame.index.names if name is not None]
    unnamed = [number for number, name in enumerate(frame.index.names) if name is None]
    if levels:
        frame = frame.reset_index(level=unnamed, drop=True) if unnamed else frame
        frame = frame.reset_index()
    return pa.Table.from_pandas(frame, preserve_index=False)


def _of_mappings(table: str, rows: Sequence[object]) -> pa.Table:
    mappings: list[Mapping[str, object]] = []
    for row in rows:
        if not isinstance(row, Mapping):
            message = f"table {table}: a list of rows holds dicts, not {type(row).__name__}"
            raise InvalidInputError(message)
        mappings.append(row)
    names = {name for row in mappings for name in row}
    for number, row in enumerate(mappings):
        missing = names - row.keys()
        if missing:
            message = (
                f"table {table}: row {number} of the list lacks {', '.join(map(repr, sorted(missing)))}, which other "
                "rows have; give every row the same keys, with None for no value"
            )
            raise InvalidInputError(message)
    return pa.Table.from_pylist([dict(row) for row in mappings])
