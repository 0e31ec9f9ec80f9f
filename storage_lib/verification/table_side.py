"""A dynamic table, at one snapshot, as a side of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce

import pyarrow as pa

from storage_lib.schema.encoding.moment import Moment
from storage_lib.schema.filter.column_reference import col
from storage_lib.schema.filter.predicate import And, Predicate
from storage_lib.schema.types.data_types import TypeRoot
from storage_lib.table.dynamic_table import DynamicTable
from storage_lib.verification.column_kind import ColumnKind, kind_of_arrow
from storage_lib.verification.compared_rows import KeyBounds
from storage_lib.verification.value_kind import ValueKind

_INTEGER_BITS = {TypeRoot.TINYINT: 8, TypeRoot.SMALLINT: 16, TypeRoot.INTEGER: 32, TypeRoot.BIGINT: 64}


class TableSide:
    """Reads the snapshot that is named, or the newest one of now."""

    def __init__(
        self,
        table: DynamicTable,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: Moment | None = None,
    ) -> None:
        snapshot = table.new_read(snapshot_id=snapshot_id, tag=tag, timestamp=timestamp).find_snapshot()
        self.name = table.name
        self.position = "no snapshot" if snapshot is None else f"snapshot {snapshot.id}"
        self._snapshot_id = None if snapshot is None else snapshot.id
        self._tag = tag  # its snapshot may have expired under its number
        self._table = table if snapshot is None else table.refresh(schema_id=snapshot.schema_id)
        self.primary_key = self._table.schema.primary_keys
        self._roots = {field.name: field.type.root for field in self._table.schema.fields}
        self.kinds: Mapping[str, ColumnKind | None] = {
            field.name: ValueKind.PADDED_TEXT if self._roots[field.name] is TypeRoot.CHAR else kind_of_arrow(field.type)
            for field in self._table.arrow_schema
        }

    def batches(self, forms: Mapping[str, ColumnKind], bounds: KeyBounds | None) -> Iterator[pa.RecordBatch]:
        """Read the columns of ``forms``; files whose statistics rule the bounds out are not opened."""
        if self._snapshot_id is None:
            return iter(())
        within = None if bounds is None else self._within(bounds)
        snapshot_id = None if self._tag else self._snapshot_id
        return iter(self._table.read(columns=[*forms], filter=within, snapshot_id=snapshot_id, tag=self._tag))

    def close(self) -> None:
        """Nothing is held open."""

    def _within(self, bounds: KeyBounds) -> Predicate | None:
        column = col(bounds.column)
        ends = ((column.__ge__, bounds.low), (column.__le__, bounds.high))
        parts = [compare(value) for compare, value in ends if value is not None and self._fits(bounds.column, value)]
        return reduce(And, parts) if parts else None

    def _fits(self, column: str, value: int | str) -> bool:
        """Whether a bound can be a value of the column; bounds may come from the other side."""
        bits = _INTEGER_BITS.get(self._roots[column])
        return bits is None or (isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1)
