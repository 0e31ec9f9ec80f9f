"""Rows sorted by position, in memory and from spilled runs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage_lib.table.changes import rows_in_order as module
from storage_lib.table.changes.rows_in_order import rows_in_order


def batches_of(positions: list[list[int]]) -> list[pa.RecordBatch]:
    """Return batches whose rows are numbered consecutively."""
    made, count = [], 0
    for each in positions:
        came = list(range(count, count + len(each)))
        count += len(each)
        made.append(pa.RecordBatch.from_pydict({"came": pa.array(came, pa.int64()), "at": pa.array(each, pa.int64())}))
    return made


@given(
    positions=st.lists(st.lists(st.integers(0, 20), max_size=12), min_size=1, max_size=8),
    bytes_in_memory=st.sampled_from([1, 64, 200, 1 << 20]),
    batch_rows=st.sampled_from([1, 2, 5, 1000]),
)
def test_rows_come_by_position_and_as_they_came_within_one(
    positions: list[list[int]], bytes_in_memory: int, batch_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BATCH_ROWS", batch_rows)
        found = list(rows_in_order(batches_of(positions), "at", bytes_in_memory=bytes_in_memory))

    every = [position for each in positions for position in each]
    came = [row for batch in found for row in batch.column("came").to_pylist()]
    assert came == sorted(range(len(every)), key=lambda row: (every[row], row))
    assert all(batch.schema.names == ["came"] for batch in found)
