"""Base of merge functions that merge a key column by column, each column from all its versions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import FieldAggregator
from storage_lib.file_store.merge_tree.merge_function.merged_rows import MergedRows
from storage_lib.file_store.merge_tree.merge_function.removal import (
    after_removal,
    deletions_below,
    without_deleted_values,
)
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@dataclass(frozen=True, kw_only=True)
class ColumnByColumn(ABC):
    """``aggregators`` are those of columns that have one, ``required`` columns are NOT NULL.

    ``removes_on_delete``: a deletion removes the whole row, whatever its columns' aggregators do.
    """

    table: str
    required: frozenset[str]
    aggregators: Mapping[str, FieldAggregator] = field(default_factory=dict)
    order: SequenceOrder = field(default_factory=SequenceOrder)
    removes_on_delete: bool = False

    @property
    def keeps_newest(self) -> bool:
        """Return False: all versions count."""
        return False

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """Merge each column; a key without additions has no row."""
        if self.removes_on_delete:
            versions = after_removal(versions).versions
        merged = self._merged(versions, final=final)
        if final:
            return merged.standing()
        return without_deleted_values(merged.merged(), self._retained) if self.removes_on_delete else merged.merged()

    def below(self, versions: Versions) -> pa.RecordBatch | None:
        """Return deletions followed by new rows, or values that were retracted before they were added."""
        if versions.retracts is None:
            return None
        if not self.removes_on_delete:
            return self._merged(versions, final=False).below()
        removal = after_removal(versions)
        deletions = deletions_below(removal, self._retained)
        merged = self._merged(removal.versions, final=False)
        values = merged.below()
        if deletions is None or values is None:
            return values if deletions is None else deletions
        # A record that was deleted and recreated has its deletion below: it takes the retracted values along.
        numbers = np.concatenate([np.flatnonzero(removal.restarts), np.flatnonzero(merged.needs_below)])
        place = np.unique(numbers, return_index=True)[1]
        return pa.concat_batches([deletions, values]).take(pa.array(place))

    @property
    def _retained(self) -> frozenset[str]:
        """Columns that a deletion needs."""
        return self.required.union(self.order.fields)

    @abstractmethod
    def _merged(self, versions: Versions, *, final: bool) -> MergedRows:
        """Merge every column of ``versions`` outside the key."""

    def _lifted_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Lift each column with its aggregator."""
        columns = [
            self.aggregators[name].lifted(column) if name in self.aggregators else column
            for name, column in zip(rows.schema.names, rows.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)
