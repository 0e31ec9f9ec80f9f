"""Matches rows of a source with the stored rows of their keys, for merges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.table.changes.comparable_frame import comparable_frame

_NUMBER = "number"
_STORED = "stored"


def repeated_key(keys: pa.Table) -> int | None:
    """Return the number of the first row that repeats the key of an earlier row; None if all keys differ."""
    repeats = comparable_frame(keys).select(~pl.struct(pl.all()).is_first_distinct()).to_series().to_numpy()
    found = np.flatnonzero(repeats)
    return int(found[0]) if len(found) else None


def places_of(keys: pa.Table, stored_keys: pa.Table) -> np.ndarray:
    """Return for each of ``keys`` the number of the equal row in ``stored_keys``, or -1 (int64)."""
    asked = comparable_frame(keys).with_row_index(_NUMBER)
    there = comparable_frame(stored_keys).with_row_index(_STORED)
    columns = [name for name in asked.columns if name != _NUMBER]
    joined = asked.join(there, on=columns, how="left", nulls_equal=True, maintain_order="left")
    return joined[_STORED].cast(pl.Int64).fill_null(-1).to_numpy()


def with_stored_values(source: pa.Table, stored: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return ``source`` with the columns ``names``; missing columns are taken from ``stored``, row by row."""
    columns = {name: source[name] if name in source.column_names else stored[name] for name in names}
    return pa.table(columns)
