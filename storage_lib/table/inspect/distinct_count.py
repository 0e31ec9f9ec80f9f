"""Estimates the number of distinct values of a column, batch by batch, in constant memory.

It keeps the k smallest hashes of all values ("k minimum values": Bar-Yossef et al., Counting distinct elements in a
data stream, 2002): exact below k values, within about 2 % above.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa

_KEPT = 4096
_HASHES = 2.0**64


class DistinctCount:
    """Estimator of one column's distinct values; nulls are not counted."""

    def __init__(self) -> None:
        self._smallest = np.empty(0, np.uint64)

    def add(self, values: pa.Array) -> None:
        """Add a batch of the column's values."""
        hashes = pl.Series(values.drop_null()).hash(seed=0).to_numpy()
        self._smallest = np.unique(np.concatenate([self._smallest, hashes]))[:_KEPT]

    @property
    def estimate(self) -> int:
        """The estimated number of distinct values added."""
        if len(self._smallest) < _KEPT:
            return len(self._smallest)
        return round((_KEPT - 1) / (float(self._smallest[-1]) / _HASHES))
