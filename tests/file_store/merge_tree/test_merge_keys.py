"""Keys of several columns, or of strings, are grouped as by sorting and comparing them one by one."""

from __future__ import annotations

import numpy as np
import polars as pl

from storage_lib.file_store.merge_tree.merge_keys import FrameKeys


def test_groups_are_those_of_a_stable_sort_however_long_keys_agree() -> None:
    random = np.random.default_rng(3)
    for round_ in range(60):
        count = int(random.integers(1, 300))
        beginnings = ["x" * int(random.integers(0, 70)) for _ in range(3)]
        endings = random.integers(0, 10 ** int(random.integers(1, 12)), count)
        keys = [beginnings[n % 3] + str(ending) for n, ending in enumerate(endings)]
        if round_ % 3 == 0:
            keys = [keys[n] for n in random.integers(0, max(1, count // 5), count)]
        columns = {"key": keys} if round_ % 2 else {"a": random.integers(0, 5, count), "key": keys}
        frame = pl.DataFrame(columns).with_columns(pl.col("key").cast(pl.Binary))
        order, starts = FrameKeys(frame).grouped()
        rows = frame.rows()
        expected = sorted(range(count), key=lambda row, rows=rows: (rows[row], row))  # type: ignore[misc]
        assert order.tolist() == expected
        begins = [0, *(at for at in range(1, count) if rows[expected[at]] != rows[expected[at - 1]])]
        assert starts.tolist() == begins
