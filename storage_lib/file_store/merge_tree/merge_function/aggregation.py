"""``merge-engine=aggregation``: each column has an aggregate function over the versions of a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.aggregate_function.combined_value import Product
from storage_lib.file_store.merge_tree.aggregate_function.field_aggregator import FieldAggregator, IgnoreRetract
from storage_lib.file_store.merge_tree.merge_function.column_by_column import ColumnByColumn
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_function.merged_rows import MergedRows, field_versions
from storage_lib.file_store.merge_tree.merge_function.versions import Versions


@dataclass(frozen=True, kw_only=True)
class Aggregation(ColumnByColumn):
    """``aggregators`` has every column except those of the key and of ``order``."""

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return these columns and those of the order."""
        return wanted | frozenset(self.order.fields)

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Lift each column with its aggregator."""
        taken = retracts(kinds) if not self.removes_on_delete else kinds.to_numpy() == 1
        if taken.any():
            self._refuse_what_cannot_be_taken_back(rows.filter(pa.array(taken)))
        return self._lifted_columns(rows), kinds

    def _merged(self, versions: Versions, *, final: bool) -> MergedRows:
        return MergedRows(
            versions=versions,
            fields={
                name: self.aggregators[name].merge(field_versions(versions, name), final=final)
                for name in versions.rows.schema.names
                if name in self.aggregators
            },
            newest=frozenset(self.order.fields),
            required=self.required,
            # As in Paimon, where a single retract row stays as written, and two are merged to a row.
            counts_retracts=True,
            keeps_retracts=any(isinstance(each, IgnoreRetract) for each in self.aggregators.values()),
        )

    def _refuse_what_cannot_be_taken_back(self, rows: pa.RecordBatch) -> None:
        refuse_what_cannot_be_taken_back(self.table, self.aggregators, rows)


def refuse_what_cannot_be_taken_back(
    table: str, aggregators: Mapping[str, FieldAggregator], rows: pa.RecordBatch
) -> None:
    """Raise ``InvalidInputError`` naming the first column that can't retract; ``rows`` are of kind ``-U`` or ``-D``."""
    for name, aggregator in aggregators.items():
        if not aggregator.takes_back:
            message = (
                f"table {table}: the input has rows of kind -U or -D, but {aggregator.name} of column {name!r} can't "
                f"take a value back. Leave these rows out, or set fields.{name}.ignore-retract=true, or "
                "ignore-delete=true, when the table is created"
            )
            raise InvalidInputError(message)
        if isinstance(aggregator, Product) and pc.any(pc.equal(rows.column(name), 0)).as_py():
            message = (
                f"table {table}: a row of kind -U or -D has 0 in column {name!r}, and nothing can be divided by that "
                f"to take it out of a product. Leave the row out, or set fields.{name}.ignore-retract=true"
            )
            raise InvalidInputError(message)
