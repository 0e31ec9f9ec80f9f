"""Completes captured changes that leave out values, with those of the row before them.

The row before is the last one of the key in the same batch, or else the stored one. With an order of the source, it is
the one with the greatest sequence below that of the change.

    change          a value that it leaves out
    +I, +U          the one of the row before; without such a row null, or unfound if there has to be one
    -D, -U          likewise; without a row before there is nothing to delete, and the change is dropped

A -U without a +U of the same key is that of a row that has got another key: it ends its row as a deletion does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.log_store.capture.captured_changes import any_mask
from storage_lib.schema.types.nested_arrays import Mask
from storage_lib.schema.types.row_kind import RETRACT_BIT, RowKind
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.changes.update_before import one_batch

_INDEX = "index"
_LACKS = "lacks"
_UNKNOWN = -1
_NOTHING = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRows:
    """Whole rows with their kinds (int8); ``came_from[i]`` (int64, ascending) is the position of row ``i`` before.

    ``unfound`` are by column the positions of changes whose required value is in no row before them.
    """

    rows: pa.Table
    kinds: pa.Array
    came_from: npt.NDArray[np.int64]
    unfound: Mapping[str, npt.NDArray[np.int64]]


def completed_rows(
    primary_keys: Sequence[str],
    rows: pa.Table,
    kinds: pa.Array,
    left_out: Mapping[str, Mask],
    required: Mapping[str, Mask],
    find: Callable[[pa.Table], pa.Table],
    *,
    order: SequenceOrder | None = None,
) -> CompletedRows:
    """Complete ``rows`` (the table's columns, in order); ``left_out`` and ``required`` are masks by column.

    ``left_out`` marks the values to complete; where ``required`` is set, they have to be found, elsewhere they become
    null. ``find`` returns the stored rows of keys. With an ``order``, rows of the source may come late:
    deletions without a row before are kept, because an older row may follow. Needs a table with a primary key.
    """
    lacks = any_mask(left_out.values(), rows.num_rows)
    if not lacks.any():
        return CompletedRows(rows=rows, kinds=kinds, came_from=np.arange(rows.num_rows), unfound={})
    keys = rows.select(list(primary_keys))
    frame = comparable_frame(keys)
    marked = frame.with_columns(pl.Series(_LACKS, lacks)).with_row_index(_INDEX)
    asked = marked.filter(_LACKS).unique(frame.columns, keep="first")[_INDEX].to_numpy()
    concerned = np.flatnonzero(marked.select(pl.col(_LACKS).any().over(frame.columns))[_LACKS].to_numpy())
    history = _History(primary_keys, rows, kinds, find(keys.take(pa.array(asked))), concerned, order)
    columns = list(rows.columns)
    unfound: dict[str, npt.NDArray[np.int64]] = {}
    for name, mask in left_out.items():
        place = rows.schema.get_field_index(name)
        columns[place], missing = history.completed(name, mask)
        lost = missing & required.get(name, np.zeros(rows.num_rows, bool))
        if lost.any():
            unfound[name] = np.flatnonzero(lost)
    whole = pa.Table.from_arrays(columns, schema=rows.schema)
    kept = np.arange(rows.num_rows) if order else np.flatnonzero(~(history.deletes_nothing & lacks))
    if len(kept) < rows.num_rows:
        whole, kinds = whole.take(pa.array(kept)), kinds.take(pa.array(kept))
    return CompletedRows(rows=whole, kinds=kinds, came_from=kept, unfound=unfound)


class _History:
    """The stored rows and the changes of some keys, by key and in order."""

    def __init__(
        self,
        primary_keys: Sequence[str],
        rows: pa.Table,
        kinds: pa.Array,
        stored: pa.Table,
        concerned: npt.NDArray[np.int64],
        order: SequenceOrder | None,
    ) -> None:
        self._rows = rows
        self._stored = stored.select(rows.column_names).cast(rows.schema)
        every = pa.concat_tables(
            [self._stored.select(primary_keys), rows.select(primary_keys).take(pa.array(concerned))]
        )
        frame = comparable_frame(every)
        of_key = frame.with_row_index(_INDEX).select(pl.col(_INDEX).min().over(frame.columns))[_INDEX].to_numpy()
        self._order = np.argsort(of_key, kind="stable")
        if order is not None:
            fields = list(order.fields)
            versions = pa.concat_tables(
                [self._stored.select(fields), rows.select(fields).take(pa.array(concerned))]
            ).combine_chunks()
            oldest_first = order.oldest_first(one_batch(versions))
            if oldest_first is not None:
                self._order = oldest_first[np.argsort(of_key[oldest_first], kind="stable")]
        # Positions in the stored rows, followed by all changes.
        self._place = np.concatenate([np.arange(stored.num_rows), concerned + stored.num_rows])[self._order]
        codes = np.concatenate([np.zeros(stored.num_rows, np.int8), kinds.to_numpy(zero_copy_only=False)])[self._place]
        begins = np.append(True, of_key[self._order][1:] != of_key[self._order][:-1])[: len(self._order)]
        # The row after an update is the next one, if it has the same key.
        is_updated = (codes[1:] == RowKind.UPDATE_AFTER) & (np.diff(self._place) == 1) & ~begins[1:]
        is_moved = (codes == RowKind.UPDATE_BEFORE) & ~np.append(is_updated, False)[: len(codes)]
        self._is_delete = (codes == RowKind.DELETE) | is_moved
        self._is_retract = (codes & RETRACT_BIT).astype(bool)
        self._begin = np.maximum.accumulate(np.where(begins, np.arange(len(self._order)), 0))

    @property
    def deletes_nothing(self) -> Mask:
        """Mask of the changes that retract a row where there is none before."""
        index = np.arange(len(self._place))
        has_before = (index > self._begin) & ~np.append(False, self._is_delete[:-1])[: len(index)]
        return self._of_changes(self._is_retract & ~has_before)

    def completed(self, name: str, mask: Mask) -> tuple[pa.ChunkedArray, Mask]:
        """Return a column with the values that ``mask`` left out, and the mask of those that no row before has."""
        column, stored = self._rows.column(name), self._stored.column(name)
        lacks = np.concatenate([np.zeros(len(stored), bool), mask])[self._place]
        # Each row's value is its own, or nothing after a deletion; one that is left out is that of the last such row.
        source = np.where(lacks, _UNKNOWN, self._place)
        source_after = np.where(self._is_delete, _NOTHING, source)
        index = np.arange(len(source))
        known = np.maximum.accumulate(np.where(source_after == _UNKNOWN, -1, index))
        before = np.append(-1, known[:-1])[: len(index)]
        before = np.where(before >= self._begin, before, -1)
        found = np.where(before >= 0, source_after[before], _NOTHING)
        is_missing = lacks & (found == _NOTHING)
        taken = np.arange(len(stored) + len(column))
        taken[self._place[lacks]] = found[lacks]
        places = taken[len(stored) :]
        every = pa.chunked_array([*stored.chunks, *column.chunks], column.type)
        values = every.take(pa.array(np.maximum(places, 0), mask=places < 0))
        return values, self._of_changes(is_missing)

    def _of_changes(self, of_places: Mask) -> Mask:
        count = self._stored.num_rows
        found = np.zeros(count + self._rows.num_rows, bool)
        found[self._place] = of_places
        return found[count:]
