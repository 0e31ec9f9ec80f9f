"""Rows with weights: ``_weight`` copies of a row were added to an answer, or removed from it if it is negative."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from storage_lib.schema.types.row_kind import RowKind

WEIGHT = "_weight"


def with_kinds(rows: pa.Table, kind_column: str) -> pa.Table:
    """Repeat each row by its weight, with the row kind of the weight's sign as the last column."""
    weights = rows.column(WEIGHT).to_numpy()
    places = np.repeat(np.arange(rows.num_rows), np.abs(weights))
    symbols = np.where(weights[places] > 0, RowKind.INSERT.symbol, RowKind.DELETE.symbol)
    repeated = rows.drop_columns([WEIGHT]).take(pa.array(places))
    return repeated.append_column(kind_column, pa.array(symbols, pa.string()))
