"""Separates retractions from additions.

If the primary key lacks a partition column, one commit may delete a key in one partition and insert it in another; a
commit that replaces files may do the same with two dynamic buckets. A reader that applies changes by key must receive
the retractions first, in any order of the partitions and buckets.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.schema.types.row_kind import RowKind

_RETRACTS = (RowKind.UPDATE_BEFORE.symbol, RowKind.DELETE.symbol)


def of_one_direction(batch: pa.RecordBatch, row_kind_column: str, *, retracts: bool) -> pa.RecordBatch:
    """Return the retractions (``-U``, ``-D``), or all other rows, in their order."""
    is_retract = pc.is_in(batch.column(row_kind_column), value_set=pa.array(_RETRACTS))
    return batch.filter(is_retract if retracts else pc.invert(is_retract))
