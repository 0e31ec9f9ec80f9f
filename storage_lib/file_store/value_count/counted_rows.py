"""Rows with counts -> as many rows as the counts say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

ROWS_MAX = 131_072


def repeated(rows: pa.RecordBatch, counts: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Every row as often as its count (0 or more) says, in batches of at most ``ROWS_MAX``, or as ``rows`` is."""
    if bool(np.all(counts == 1)):
        yield rows
        return
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]) if len(ends) else 0, ROWS_MAX):
        copies = np.arange(start, min(start + ROWS_MAX, int(ends[-1])))
        yield rows.take(pa.array(np.searchsorted(ends, copies, side="right")))
