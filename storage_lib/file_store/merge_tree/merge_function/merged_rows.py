"""Assembles merged columns to rows: results, retract rows, and rows to store below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_KIND
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import MergedField
from storage_lib.file_store.merge_tree.aggregate_function.field_versions import FieldVersions
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.schema.types.row_kind import RowKind


def field_versions(versions: Versions, name: str) -> FieldVersions:
    """Return one column of all versions, oldest first."""
    return FieldVersions(
        values=versions.rows.column(name),
        starts=versions.starts,
        numbers=np.arange(len(versions.starts)),
        count=len(versions.starts),
        retracts=versions.retracts,
    )


@dataclass(frozen=True, kw_only=True)
class MergedRows:
    """Columns not in ``fields`` are equal in all versions of a key, or taken from the newest (``newest``).

    ``required`` columns are NOT NULL: where a merge would give null, they keep a version's value. With
    ``counts_retracts`` a key with retractions only has a row if there are at least two.
    """

    versions: Versions
    fields: Mapping[str, MergedField]
    newest: frozenset[str]
    required: frozenset[str]
    counts_retracts: bool = False

    @cached_property
    def adds(self) -> npt.NDArray[np.bool_]:
        """Mask of keys with rows: those with an addition. The others only retract."""
        retracts = self.versions.retracts
        if retracts is None:
            return np.ones(len(self.versions.starts), dtype=np.bool_)
        adds = np.logical_or.reduceat(~retracts, self.versions.starts)
        return adds | (self.versions.ends - self.versions.starts > 1) if self.counts_retracts else adds

    def standing(self) -> pa.RecordBatch:
        """Return the rows of a final merge."""
        rows, adds = self._without_retracted_sequence(self.merged()), self.adds
        return rows if adds.all() else rows.filter(pa.array(adds))

    def merged(self) -> pa.RecordBatch:
        """Return the rows of a merge that is not final: one for each key."""
        adds, rows = self.adds, self.versions.rows
        columns = [self._merged(name, adds) for name in rows.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def _without_retracted_sequence(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with null ``newest`` columns if a key's newest version retracts, as in Paimon's Java core.

        Only in a final merge: before that, older rows may still have to be ordered against the merged one.
        """
        retracts = self.versions.retracts
        names = self.newest - self.required
        if retracts is None or not names or not self.counts_retracts:
            return rows
        retracted = retracts[self.versions.ends - 1] & (self.versions.ends - self.versions.starts > 1)
        if not retracted.any():
            return rows
        columns = [
            _chosen(~retracted, column, pa.nulls(len(column), column.type)) if name in names else column
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)

    def below(self) -> pa.RecordBatch | None:
        """Return the rows to store below the merged ones, as old as each key's oldest version; None without any."""
        columns_below = [field.below for field in self.fields.values() if field.below is not None]
        if not columns_below:
            return None
        needed = np.zeros(len(self.versions.starts), dtype=np.bool_)
        for column in columns_below:
            needed |= column.is_valid().to_numpy(zero_copy_only=False)
        needed &= self.adds
        if not needed.any():
            return None
        rows = self.versions.rows
        columns = [self._below(name) for name in rows.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema).filter(pa.array(needed))

    def _merged(self, name: str, adds: npt.NDArray[np.bool_]) -> pa.Array:
        last = pa.array(self.versions.ends - 1)
        if name == VALUE_KIND:
            kinds = self.versions.rows.column(name).take(last).to_numpy()
            return pa.array(np.where(adds, np.int8(RowKind.INSERT), kinds), pa.int8())
        if name == SEQUENCE_NUMBER or name in self.newest:
            return self.versions.rows.column(name).take(last)
        if name not in self.fields:
            return self.versions.rows.column(name).take(pa.array(self.versions.starts))
        field = self.fields[name]
        merged = field.state
        if not adds.all():
            alone = field.below if field.alone is None else field.alone
            if alone is None:
                alone = pa.nulls(len(merged), merged.type)
            merged = _chosen(adds, merged, alone)
        return self._filled(name, merged, last, field.neutral)

    def _below(self, name: str) -> pa.Array:
        first = pa.array(self.versions.starts)
        if name == VALUE_KIND:
            return pa.array(np.full(len(first), RowKind.UPDATE_BEFORE, dtype=np.int8))
        if name not in self.fields:
            return self.versions.rows.column(name).take(first)
        field = self.fields[name]
        below = pa.nulls(len(first), field.state.type) if field.below is None else field.below
        return self._filled(name, below, first, field.neutral)

    def _filled(self, name: str, merged: pa.Array, rows: pa.Array, neutral: object) -> pa.Array:
        if name not in self.required or merged.null_count == 0:
            return merged
        is_there = merged.is_valid().to_numpy(zero_copy_only=False)
        if neutral is None:
            return _chosen(is_there, merged, self.versions.rows.column(name).take(rows))
        return _chosen(is_there, merged, pa.repeat(pa.scalar(neutral, merged.type), len(merged)))


def _chosen(first: npt.NDArray[np.bool_], values: pa.Array, others: pa.Array) -> pa.Array:
    """Choose values from either array; Arrow's ``if_else`` does not support maps."""
    place = np.arange(len(first))
    return pa.concat_arrays([values, others]).take(pa.array(np.where(first, place, place + len(first))))
