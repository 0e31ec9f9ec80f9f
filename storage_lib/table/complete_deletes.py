"""Deletions that come with their key only -> deletions that say the whole row, as the log has them.

The row is what came for the key before, in the same batch or else in the table; where there is none, nothing is
deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from storage_lib.schema.row_kind import ROW_KIND_SYMBOLS, RowKind
from storage_lib.table.comparable_frame import comparable_frame
from storage_lib.table.update_before import complete_changes, one_batch

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

_INDEX = "index"
_IS_DELETE = "is delete"


def with_whole_deletes(table: DynamicTable, rows: pa.Table, kinds: pa.Array) -> tuple[pa.Table, pa.Array]:
    """``rows`` (the table's columns) and their ``kinds`` (int8: +I and -D) with whole deletions, in the same order."""
    is_delete = kinds.to_numpy(zero_copy_only=False) == RowKind.DELETE
    if not is_delete.any():
        return rows, kinds
    primary_keys = table.schema.primary_keys
    keys = rows.select(primary_keys)
    frame = comparable_frame(keys)
    columns = frame.columns
    marked = frame.with_columns(pl.Series(_IS_DELETE, is_delete)).with_row_index(_INDEX)
    deleted = marked.filter(_IS_DELETE).unique(columns, keep="first")[_INDEX].to_numpy()
    concerned = np.flatnonzero(marked.select(pl.col(_IS_DELETE).any().over(columns))[_IS_DELETE].to_numpy())
    changes = complete_changes(
        one_batch(rows.take(pa.array(concerned))),
        kinds.take(pa.array(concerned)),
        table.lookup(keys.take(pa.array(deleted))),
        primary_keys,
    )
    is_whole_delete = changes.kinds.to_numpy(zero_copy_only=False) == RowKind.DELETE
    whole = pa.Table.from_batches([changes.rows.filter(pa.array(is_whole_delete))])
    positions = np.concatenate([np.flatnonzero(~is_delete), concerned[changes.came_from[is_whole_delete]]])
    order = np.argsort(positions, kind="stable")
    every = pa.concat_tables([rows.filter(pa.array(~is_delete)), whole])
    return every.take(pa.array(order)), kinds.take(pa.array(positions[order]))


def with_kind_column(rows: pa.Table, kinds: pa.Array, name: str) -> pa.Table:
    """``rows`` with their kinds (int8) as a last column of symbols, as users hand them in."""
    return rows.append_column(pa.field(name, pa.string()), pa.array(ROW_KIND_SYMBOLS).take(kinds))
