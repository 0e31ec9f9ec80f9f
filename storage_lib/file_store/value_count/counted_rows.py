"""Expansion of rows with counts to repeated rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

ROWS_MAX = 131_072


def repeated(rows: pa.RecordBatch, counts: np.ndarray) -> Iterator[pa.RecordBatch]:
    """Yield every row ``count`` times (0 or more), in batches of at most ``ROWS_MAX``; ``rows`` itself if all are 1."""
    if bool(np.all(counts == 1)):
        yield rows
        return
    ends = np.cumsum(counts)
    for start in range(0, int(ends[-1]) if len(ends) else 0, ROWS_MAX):
        copies = np.arange(start, min(start + ROWS_MAX, int(ends[-1])))
        yield rows.take(pa.array(np.searchsorted(ends, copies, side="right")))
