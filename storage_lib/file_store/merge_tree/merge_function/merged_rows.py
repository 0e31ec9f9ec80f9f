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
    ``counts_retracts`` a key with retractions only has a row if there are at least two. A merge that is not final
    stores such a row as an addition, or with ``keeps_retracts`` as two retractions: a column that ignores retractions
    would take the addition's null for a new value.
    """

    versions: Versions
    fields: Mapping[str, MergedField]
    newest: frozenset[str]
    required: frozenset[str]
    counts_retracts: bool = False
    keeps_retracts: bool = False

    @cached_property
    def has_row(self) -> npt.NDArray[np.bool_]:
        """Mask of keys with rows: those with an addition, and some of those that only retract."""
        return self._added | self._retracted_twice if self.counts_retracts else self._added

    @cached_property
    def adds(self) -> npt.NDArray[np.bool_]:
        """Mask of keys that a merge that is not final stores as an addition; the others as a retraction."""
        return self._added if self.keeps_retracts else self.has_row

    @cached_property
    def _added(self) -> npt.NDArray[np.bool_]:
        retracts = self.versions.retracts
        if retracts is None:
            return np.ones(len(self.versions.starts), dtype=np.bool_)
        return np.logical_or.reduceat(~retracts, self.versions.starts)

    @property
    def _retracted_twice(self) -> npt.NDArray[np.bool_]:
        """Mask of keys with several versions that all retract."""
        return ~self._added & (self.versions.ends - self.versions.starts > 1)

    def standing(self) -> pa.RecordBatch:
        """Return the rows of a final merge."""
        rows, has_row = self._without_retracted_sequence(self._rows(self.has_row)), self.has_row
        return rows if has_row.all() else rows.filter(pa.array(has_row))

    def merged(self) -> pa.RecordBatch:
        """Return the rows of a merge that is not final: one for each key."""
        return self._rows(self.adds)

    def _rows(self, adds: npt.NDArray[np.bool_]) -> pa.RecordBatch:
        rows = self.versions.rows
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

    @cached_property
    def needs_below(self) -> npt.NDArray[np.bool_]:
        """Mask of keys with a row to store below the merged one."""
        needed = np.zeros(len(self.versions.starts), dtype=np.bool_)
        for field in self.fields.values():
            if field.below is not None:
                needed |= field.below.is_valid().to_numpy(zero_copy_only=False)
        needed &= self.adds
        return needed | self._kept_twice

    @property
    def _kept_twice(self) -> npt.NDArray[np.bool_]:
        """Mask of keys that two retractions stand for; the merged one has all that the versions retract."""
        if self.counts_retracts and self.keeps_retracts:
            return self._retracted_twice
        return np.zeros(len(self.versions.starts), dtype=np.bool_)

    def below(self) -> pa.RecordBatch | None:
        """Return the rows to store below the merged ones, as old as each key's oldest version; None without any."""
        if not self.needs_below.any():
            return None
        rows = self.versions.rows
        columns = [self._below(name) for name in rows.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema).filter(pa.array(self.needs_below))

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
        nothing = pa.nulls(len(first), field.state.type)
        below = nothing if field.below is None else field.below
        if field.below is not None and self._kept_twice.any():
            below = _chosen(~self._kept_twice, below, nothing)
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
