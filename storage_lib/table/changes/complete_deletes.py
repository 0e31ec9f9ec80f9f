"""Completes deletions that lack columns of their row, because the log needs whole rows.

An upsert-kafka topic deletes by key alone, and so do databases that log only the key of a deleted row (as Postgres by
default). The row is the last one of the key in the same batch, or else in the table; if there is none, the deletion is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.nested_arrays import Mask
from storage_lib.schema.types.row_kind import ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.changes.update_before import complete_changes, one_batch

_INDEX = "index"
_LACKS = "lacks"


def with_whole_deletes(
    primary_keys: Sequence[str],
    rows: pa.Table,
    kinds: pa.Array,
    find: Callable[[pa.Table], pa.Table],
    *,
    completed: Mask | None = None,
) -> tuple[pa.Table, pa.Array]:
    """Return ``rows`` (the table's columns) and their ``kinds`` (int8) with whole deletions, in the same order.

    A deletion with a null outside its key may be incomplete, and its row is looked up by ``find``, which returns the
    stored rows of keys; those in ``completed`` are whole although they may have nulls. If no deletion is incomplete,
    the same objects are returned. Needs a table with a primary key.
    """
    lacks = _may_lack_something(primary_keys, rows, kinds)
    if completed is not None:
        lacks &= ~completed
    if not lacks.any():
        return rows, kinds
    keys = rows.select(list(primary_keys))
    frame = comparable_frame(keys)
    columns = frame.columns
    marked = frame.with_columns(pl.Series(_LACKS, lacks)).with_row_index(_INDEX)
    asked = marked.filter(_LACKS).unique(columns, keep="first")[_INDEX].to_numpy()
    concerned = np.flatnonzero(marked.select(pl.col(_LACKS).any().over(columns))[_LACKS].to_numpy())
    changes = complete_changes(
        one_batch(rows.take(pa.array(concerned))),
        kinds.take(pa.array(concerned)),
        find(keys.take(pa.array(asked))),
        primary_keys,
    )
    came_from = concerned[changes.came_from]
    is_wanted = (changes.kinds.to_numpy(zero_copy_only=False) == RowKind.DELETE) & lacks[came_from]
    whole = pa.Table.from_batches([changes.rows.filter(pa.array(is_wanted))])
    positions = np.concatenate([np.flatnonzero(~lacks), came_from[is_wanted]])
    order = np.argsort(positions, kind="stable")
    every = pa.concat_tables([rows.filter(pa.array(~lacks)), whole])
    return every.take(pa.array(order)), kinds.take(pa.array(positions[order]))


def with_kind_column(rows: pa.Table, kinds: pa.Array, name: str) -> pa.Table:
    """Append the kinds (int8) to ``rows`` as a column of symbols, the form that users write."""
    return rows.append_column(pa.field(name, pa.string()), pa.array(ROW_KIND_SYMBOLS).take(kinds))


def _may_lack_something(primary_keys: Sequence[str], rows: pa.Table, kinds: pa.Array) -> np.ndarray:
    """Return a mask of the rows that are deletions with a null outside their key."""
    is_delete: np.ndarray = kinds.to_numpy(zero_copy_only=False) == RowKind.DELETE
    others = [rows.column(name) for name in rows.column_names if name not in primary_keys]
    nulls = [column.is_null() for column in others if column.null_count]
    if not nulls or not is_delete.any():
        return np.zeros(len(is_delete), bool)
    has_null: np.ndarray = reduce(pc.or_, nulls).to_numpy()
    return is_delete & has_null
