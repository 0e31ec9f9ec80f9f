"""Deletions that remove a whole record by the sequence of a group (``partial-update.remove-record-on-sequence-group``).

A ``-D`` whose sequence, in a group that the option names, is not smaller than the key's earlier ones removes the
record; a late one only retracts its own columns. Later additions start from the row of the deletion, including its
sequences, so that a late, older row does not count as newer.
Source: ``PartialUpdateMergeFunction.retractWithSequenceGroup`` of apache/paimon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import VALUE_KIND
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import NOTHING
from storage_lib.file_store.merge_tree.merge_function.removal import only_rows
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.schema.options.field_options import SequenceGroup
from storage_lib.schema.types.row_kind import RowKind

Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class GroupRemoval:
    """Versions of keys, and the deletions among them that remove a record by one of the ``groups``."""

    versions: Versions
    groups: tuple[SequenceGroup, ...]

    def based(self) -> tuple[Versions, Flags]:
        """Return the remaining rows: a recreated record's from its deletion (as an addition) on; else the deletion.

        Also returns which rows are such deletions: a record restarts from all their columns, including those of groups
        without a sequence.
        """
        rows = self.versions.rows
        kinds = rows.column(VALUE_KIND).to_numpy().copy()
        kinds[self._last[self._restarts]] = RowKind.INSERT
        index = rows.schema.get_field_index(VALUE_KIND)
        rows = rows.set_column(index, rows.schema.field(index), pa.array(kinds, pa.int8()))
        stays = self._stays(with_deletion=True)
        bases = np.zeros(rows.num_rows, dtype=np.bool_)
        bases[self._last[self._restarts]] = True
        return only_rows(Versions(rows=rows, starts=self.versions.starts), stays), bases[stays]

    def after(self) -> Versions:
        """Return the rows above ``below``: of a recreated record those added after the deletion."""
        return only_rows(self.versions, self._stays(with_deletion=False))

    def below(self) -> pa.RecordBatch | None:
        """Return the deletions followed by additions, unchanged; None if there are none."""
        if not self._restarts.any():
            return None
        return self.versions.rows.take(pa.array(self._last[self._restarts]))

    def with_deletions(self, merged: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row per key: from ``merged``, or for removed records that were not recreated, the deletion.

        Only the rows below decide whether it removes the record, or which columns it retracts if not.
        """
        is_removed = (self._last != NOTHING) & ~self._restarts
        if not is_removed.any():
            return merged
        place = np.arange(merged.num_rows)
        place[is_removed] = merged.num_rows + np.arange(int(is_removed.sum()))
        deletions = self.versions.rows.take(pa.array(self._last[is_removed]))
        columns = [pa.concat_arrays(pair).take(pa.array(place)) for pair in zip(merged, deletions, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=merged.schema)

    def _stays(self, *, with_deletion: bool) -> Flags:
        positions, last = np.arange(self.versions.rows.num_rows), self._last[self.versions.group_of_row]
        restarts = self._restarts[self.versions.group_of_row]
        follows = positions >= last if with_deletion else positions > last
        stays: Flags = np.where(restarts, follows, (last == NOTHING) | (positions == last))
        return stays

    @cached_property
    def _restarts(self) -> Flags:
        """Mask of keys that were removed and then added to."""
        retracts = self.versions.retracts
        added = np.ones(self.versions.rows.num_rows, dtype=np.bool_) if retracts is None else ~retracts
        follows = np.arange(len(added)) > self._last[self.versions.group_of_row]
        recreated: Flags = (self._last != NOTHING) & np.logical_or.reduceat(added & follows, self.versions.starts)
        return recreated

    @cached_property
    def _last(self) -> Positions:
        """Last deletion of each key that removes its record, or ``NOTHING``."""
        deletes = self.versions.rows.column(VALUE_KIND).to_numpy() == RowKind.DELETE
        ranks = [sequence_ranks(self.versions.rows, group.fields) for group in self.groups]
        if len(ranks) == 1:
            # A deletion has the greatest sequence so far, so the rows it removes do not affect the rank of later ones.
            return self._last_of(deletes & self._is_greatest(ranks[0]))
        last = np.full(len(self.versions.starts), NOTHING)
        while True:
            # The sequence of another group restarts from that of the deletion.
            forgotten = np.arange(len(deletes)) < last[self.versions.group_of_row]
            left = [np.where(forgotten, NOTHING, each) for each in ranks]
            removes = deletes & np.logical_or.reduce([self._is_greatest(each) for each in left])
            first = self._first_of(removes & (np.arange(len(deletes)) > last[self.versions.group_of_row]))
            if (first == NOTHING).all():
                return last
            last = np.where(first == NOTHING, last, first)

    def _is_greatest(self, ranks: Positions) -> Flags:
        """Return whether a row has a sequence that is not smaller than any earlier one of its key."""
        # Give each key a higher range of numbers, so that one running maximum works for all keys.
        stacked = self.versions.group_of_row * (len(ranks) + 2) + ranks
        greatest: Flags = (ranks != NOTHING) & (stacked == np.maximum.accumulate(stacked))
        return greatest

    def _last_of(self, rows: Flags) -> Positions:
        return np.maximum.reduceat(np.where(rows, np.arange(len(rows)), NOTHING), self.versions.starts)

    def _first_of(self, rows: Flags) -> Positions:
        first = np.minimum.reduceat(np.where(rows, np.arange(len(rows)), len(rows)), self.versions.starts)
        return np.where(first < len(rows), first, NOTHING)


def sequence_ranks(rows: pa.RecordBatch, fields: Sequence[str]) -> Positions:
    """Return ranks that order rows by their sequences, nulls first; ``NOTHING`` for a sequence of nulls only."""
    columns = [rows.column(name) for name in fields]
    has_one = np.logical_or.reduce([column.is_valid().to_numpy(zero_copy_only=False) for column in columns])
    frame = pl.DataFrame({str(place): pl.from_arrow(column) for place, column in enumerate(columns)})
    ordered = frame.with_row_index("row").sort(frame.columns, nulls_last=False, maintain_order=True)
    differs = ordered.select(pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in frame.columns))
    ranks = np.empty(rows.num_rows, dtype=np.int64)
    ranks[ordered["row"].to_numpy()] = np.cumsum(differs.to_series().to_numpy())
    return np.where(has_one, ranks, NOTHING)
