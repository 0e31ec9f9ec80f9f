"""Merge function of a table without primary key: counts are added, and a row whose count is zero is dropped.

Addition commutes, so versions may come in any order: a deletion may come before its row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND
from storage_lib.file_store.merge_tree.merge_function.merge_function import retracts
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.merge_tree.merge_function.versions import Versions
from storage_lib.file_store.value_count.value_count_schema import COUNT_FIELD
from storage_lib.schema.types.row_kind import RowKind


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A ``MergeFunction``."""

    order: SequenceOrder = field(default=SequenceOrder())
    keeps_newest: bool = field(default=False, init=False)

    def columns_for(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return these columns and the count."""
        return wanted | {VALUE_COUNT}

    def lifted(self, rows: pa.RecordBatch, kinds: pa.Int8Array) -> tuple[pa.RecordBatch, pa.Int8Array]:
        """Add a count to each row: +1 for additions, -1 for retractions."""
        counts = np.where(retracts(kinds), -1, 1).astype(np.int64)
        return rows.append_column(COUNT_FIELD, pa.array(counts)), _kinds_of(counts)

    def merge(self, versions: Versions, *, final: bool) -> pa.RecordBatch:
        """Add the counts. If ``final``, negative sums are dropped like zero."""
        rows = versions.rows
        counts = np.add.reduceat(rows.column(VALUE_COUNT).to_numpy(), versions.starts)
        standing = np.flatnonzero(counts > 0 if final else counts != 0)
        counts = counts[standing]
        merged = rows.take(pa.array(versions.starts[standing])) if len(standing) < rows.num_rows else rows
        replaced = {VALUE_COUNT: pa.array(counts), VALUE_KIND: _kinds_of(counts)}
        if SEQUENCE_NUMBER in rows.schema.names:
            # One number for all rows: it only shows the age of the file, and compresses well.
            newest = pc.max(rows.column(SEQUENCE_NUMBER)).as_py()
            replaced[SEQUENCE_NUMBER] = pa.array(np.full(len(standing), newest, dtype=np.int64))
        columns = [replaced.get(name, merged.column(place)) for place, name in enumerate(rows.schema.names)]
        return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _kinds_of(counts: np.ndarray) -> pa.Int8Array:
    return pa.array(np.where(counts < 0, int(RowKind.DELETE), int(RowKind.INSERT)).astype(np.int8))


VALUE_COUNT_MERGE = ValueCount()
