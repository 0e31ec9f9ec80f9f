"""Rows as a Polars frame in which equal means the same: as the table, not as arithmetic, takes it."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.data_file.comparable_key import comparable_integers


def column_name(position: int) -> str:
    """Polars takes names such as "*" and "^a.*$" for patterns, so columns go by their positions."""
    return f"column {position}"


def comparable_frame(rows: pa.Table) -> pl.DataFrame:
    """The columns, named by ``column_name``; floats as integers, by which -0.0 is not 0.0 and NaN equals itself."""
    return pl.DataFrame({column_name(position): _comparable(column) for position, column in enumerate(rows.columns)})


def _comparable(column: pa.ChunkedArray) -> pl.Series:
    if pa.types.is_floating(column.type):
        values = column.combine_chunks()
        integers = pa.array(comparable_integers(pc.fill_null(values, 0.0)))
        column = pc.if_else(values.is_valid(), integers, pa.scalar(None, pa.int64()))
    return pl.Series(pl.from_arrow(column))
