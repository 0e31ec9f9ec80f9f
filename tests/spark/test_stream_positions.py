"""Decisions about a stream read, without a read."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from storage_lib.log_store.log_offsets import LogOffsets
from storage_lib.spark.data_source.stream_reader import not_beyond
from storage_lib.table.protocol.stream_position import StreamPosition


def log(*offsets: int, snapshot: int = 3, watched: int | None = None) -> StreamPosition:
    return StreamPosition(
        snapshot_id=snapshot, offsets=LogOffsets(dict(enumerate(offsets))), watched_snapshot_id=watched
    )


def after(snapshot: int) -> StreamPosition:
    return StreamPosition(snapshot_id=snapshot)


def split(index: int) -> StreamPosition:
    return StreamPosition(snapshot_id=3, split_index=index)


@pytest.mark.parametrize(
    ("start", "end", "target", "reached"),
    [
        (log(0, 0), log(5, 5), log(9, 9), log(5, 5)),
        (log(0, 0), log(5, 9), log(7, 7), log(5, 7)),
        (log(7, 7), log(9, 9), log(7, 7), log(7, 7)),
        (log(8, 0), log(9, 9), log(7, 7), log(8, 7)),
        (log(7, watched=4), log(9, watched=6), log(7, snapshot=5), log(7, watched=5)),
        (log(7, watched=5), log(9, watched=6), log(7, snapshot=5), log(7, watched=5)),
        (log(6, watched=4), log(9, watched=6), log(7, snapshot=5), log(7, watched=6)),
        (split(0), split(4), log(7), split(4)),
        (split(0), log(3), log(7), log(3)),
        (after(3), after(9), after(5), after(5)),
        (after(6), after(9), after(5), after(6)),
        (split(0), after(3), after(5), after(3)),
    ],
)
def test_a_run_with_a_fixed_end_stops_there(
    start: StreamPosition, end: StreamPosition, target: StreamPosition, reached: StreamPosition
) -> None:
    assert not_beyond(end, start, target) == reached
