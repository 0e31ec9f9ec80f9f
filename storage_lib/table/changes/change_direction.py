"""The removals of a change apart from its additions.

Where the primary key lacks a partition column, one commit may take a key away in one partition and bring it in another.
A reader that goes by the key must get the removals first, whatever the order of the partitions.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.row_kind import RowKind

_RETRACTS = pa.array([RowKind.UPDATE_BEFORE.symbol, RowKind.DELETE.symbol])


def of_one_direction(batch: pa.RecordBatch, row_kind_column: str, *, retracts: bool) -> pa.RecordBatch:
    """The rows that take something away, or all others; in their order."""
    is_retract = pc.is_in(batch.column(row_kind_column), value_set=_RETRACTS)
    return batch.filter(is_retract if retracts else pc.invert(is_retract))
