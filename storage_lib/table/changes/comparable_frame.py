"""Converts rows to a Polars frame whose equality is that of the table, not that of arithmetic."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.data_file.comparable_key import comparable_integers


def column_name(position: int) -> str:
    """Return a column's name by position, because Polars reads names such as "*" and "^a.*$" as patterns."""
    return f"column {position}"


def comparable_frame(rows: pa.Table) -> pl.DataFrame:
    """Convert rows; columns are named by ``column_name``, and floats become integers: -0.0 differs from 0.0, NaN equals
    NaN.
    """
    return pl.DataFrame({column_name(position): _comparable(column) for position, column in enumerate(rows.columns)})


def _comparable(column: pa.ChunkedArray) -> pl.Series:
    if pa.types.is_floating(column.type):
        values = column.combine_chunks()
        integers = pa.array(comparable_integers(pc.fill_null(values, 0.0)))
        column = pc.if_else(values.is_valid(), integers, pa.scalar(None, pa.int64()))
    return pl.Series(pl.from_arrow(column))
