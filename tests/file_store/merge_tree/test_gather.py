"""Gathering many rows in another order returns the same rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from storage_lib.file_store.merge_tree.gather import VIEWED_ROWS_MIN, gathered


@pytest.mark.parametrize("count", [3, VIEWED_ROWS_MIN])
def test_strings_and_bytes_short_and_long_and_nulls_come_in_the_order_asked(count: int) -> None:
    random = np.random.default_rng(5)
    values = [None, "", "a", "twelve chars", "ein längerer Text ☃"]
    texts = [values[kind] for kind in random.integers(0, len(values), 2 * count)]
    rows = pa.RecordBatch.from_pydict(
        {
            "id": pa.array(range(2 * count)),
            "text": pa.array(texts, pa.string()),
            "bytes": pa.array([None if text is None else text.encode() for text in texts], pa.binary()),
        }
    ).slice(1)
    order = random.permutation(2 * count - 1)[:count]

    assert gathered(rows, order).equals(rows.take(pa.array(order)))
