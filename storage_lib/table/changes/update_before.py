"""Completes changes with their pre-images.

    change              the key existed              the key did not exist
    +I, +U              -U old, +U new               +I new
    -D, -U              -D old                       nothing

A ``-U`` directly before the upsert of its key belongs to that upsert. Deletions have the stored row, whichever columns
the input had. Several changes of one key apply one after another, in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.schema.types.row_kind import RETRACT_BIT, RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame

_INDEX = "index"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteChanges:
    """``rows`` with their ``kinds`` (int8), each pair adjacent; ``came_from[i]`` (int64, ascending) is the position of
    the change that row ``i`` belongs to.
    """

    rows: pa.RecordBatch
    kinds: pa.Array
    came_from: npt.NDArray[np.int64]

    def since(self, position: int) -> CompleteChanges:
        """Return the rows of changes at or after ``position``."""
        start = int(np.searchsorted(self.came_from, position))
        return CompleteChanges(
            rows=self.rows.slice(start), kinds=self.kinds.slice(start), came_from=self.came_from[start:]
        )


def complete_changes(
    rows: pa.RecordBatch, kinds: pa.Array, old: pa.Table, primary_keys: Sequence[str]
) -> CompleteChanges:
    """Return ``rows`` (kinds int8, in order) as changes of ``old``, which has the same columns and unique keys."""
    every = pa.concat_tables([old, pa.Table.from_batches([rows])])
    frame = comparable_frame(every.select(primary_keys))
    of_key = frame.with_row_index(_INDEX).select(pl.col(_INDEX).min().over(frame.columns))[_INDEX].to_numpy()
    codes = np.concatenate([np.zeros(old.num_rows, np.int8), kinds.to_numpy(zero_copy_only=False)])
    is_there = codes & RETRACT_BIT == 0

    # By key: the old row first, then the changes in order.
    order = np.argsort(of_key, kind="stable")
    follows = of_key[order[1:]] == of_key[order[:-1]]
    is_folded = (codes[order[:-1]] == RowKind.UPDATE_BEFORE) & follows & is_there[order[1:]]
    order = order[np.append(~is_folded, True)[: len(order)]]
    follows = np.append(False, of_key[order[1:]] == of_key[order[:-1]])[: len(order)]
    before = np.where(follows, np.roll(order, 1), -1)
    before[(before >= 0) & ~is_there[before]] = -1

    # Restore the order of the changes: at most two rows per change, the old one first.
    is_change = order >= old.num_rows
    changes, before = order[is_change], before[is_change]
    came = np.argsort(changes, kind="stable")
    changes, before = changes[came], before[came]
    candidates = np.stack([before, np.where(is_there[changes], changes, -1)], axis=1)
    was_there, is_there_now = candidates[:, 0] >= 0, candidates[:, 1] >= 0
    kinds_of = np.stack(
        [
            np.where(is_there_now, RowKind.UPDATE_BEFORE, RowKind.DELETE),
            np.where(was_there, RowKind.UPDATE_AFTER, RowKind.INSERT),
        ],
        axis=1,
    )
    is_used = candidates >= 0
    return CompleteChanges(
        rows=one_batch(every.take(pa.array(candidates[is_used]))),
        kinds=pa.array(kinds_of[is_used], pa.int8()),
        came_from=np.repeat(changes - old.num_rows, is_used.sum(axis=1)),
    )


def joined(changes: Sequence[tuple[pa.RecordBatch, pa.Array]]) -> tuple[pa.RecordBatch, pa.Array]:
    """Concatenate rows and kinds of several batches, at least one."""
    if len(changes) == 1:
        return changes[0]
    return one_batch(pa.Table.from_batches([rows for rows, _ in changes])), pa.concat_arrays([k for _, k in changes])


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Combine all rows into one batch."""
    columns = [
        pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type) for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
