"""Sorts rows by position in bounded memory.

Rows are sorted in memory up to a number of bytes. Beyond it, sorted runs spill to Arrow files in a temporary directory,
and are merged one range of positions at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

BYTES_IN_MEMORY = 128 << 20
_BATCH_ROWS = 65_536


def rows_in_order(
    batches: Iterable[pa.RecordBatch], column: str, *, bytes_in_memory: int = BYTES_IN_MEMORY
) -> Iterator[pa.RecordBatch]:
    """Yield the rows without ``column`` (int64, no nulls), ascending and stably sorted by it.

    All rows are consumed before the first one is returned.
    """
    held: list[pa.RecordBatch] = []
    held_bytes = 0
    runs: list[Path] = []
    with ExitStack() as until_read:
        directory: Path | None = None
        for batch in batches:
            held.append(batch)
            held_bytes += batch.nbytes
            if held_bytes < bytes_in_memory:
                continue
            if directory is None:
                directory = Path(until_read.enter_context(TemporaryDirectory(prefix="dynamic-table-order-")))
            runs.append(_put_aside(_sorted(held, column), directory / f"run-{len(runs)}.arrow"))
            held, held_bytes = [], 0
        left = [_sorted(held, column)] if held else []
        opened = [pa.ipc.open_file(until_read.enter_context(pa.memory_map(str(run)))).read_all() for run in runs]
        yield from _merged([*opened, *left], column)


def _sorted(batches: list[pa.RecordBatch], column: str) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    positions = rows.column(column).to_numpy()
    if np.all(positions[1:] >= positions[:-1]):
        return rows
    return rows.take(pa.array(np.argsort(positions, kind="stable")))


def _put_aside(rows: pa.Table, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=_BATCH_ROWS)
    return path


def _merged(runs: list[pa.Table], column: str) -> Iterator[pa.RecordBatch]:
    if len(runs) == 1:
        yield from runs[0].drop_columns([column]).to_batches(max_chunksize=_BATCH_ROWS)
        return
    positions = [run.column(column).to_numpy() for run in runs]
    reached = [0] * len(runs)
    share = max(1, _BATCH_ROWS // max(1, len(runs)))
    while any(place < len(of_run) for place, of_run in zip(reached, positions, strict=True)):
        # Up to the smallest last position of the runs' next pieces, all rows are available.
        until = min(
            int(of_run[min(place + share, len(of_run)) - 1])
            for place, of_run in zip(reached, positions, strict=True)
            if place < len(of_run)
        )
        ends = [int(np.searchsorted(of_run, until, side="right")) for of_run in positions]
        pieces = [run.slice(start, end - start) for run, start, end in zip(runs, reached, ends, strict=True)]
        rows = pa.concat_tables(pieces)
        order = np.argsort(rows.column(column).to_numpy(), kind="stable")
        yield from rows.drop_columns([column]).take(pa.array(order)).to_batches(max_chunksize=_BATCH_ROWS)
        reached = ends
