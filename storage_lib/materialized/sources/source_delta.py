"""Changes of a source between two snapshots as rows with weights: +1 for a new row, -1 for an old one.

The changes of a table with a key lack the old rows; these are looked up at the earlier snapshot. Small changes are read
and completed in this process, once for all tables that it refreshes; an engine reads large ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from storage_lib.materialized.sources.shared_changes import SharedChanges
from storage_lib.materialized.sources.source import SourceDelta
from storage_lib.materialized.sources.weighted_rows import WEIGHT
from storage_lib.schema.types.row_kind import RETRACT_BIT
from storage_lib.table.changes.multiset_change import summed_changes

if TYPE_CHECKING:
    from storage_lib.table.dynamic_table import DynamicTable

BYTES_HERE_MAX = 16 << 20
"""Size of files whose changed rows this process reads."""

_ROWS_HERE_MAX = 200_000
_SHARED = SharedChanges()
_WEIGHT_FIELD = pa.field(WEIGHT, pa.int64(), nullable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDelta(SourceDelta):
    """The ``SourceDelta`` of a dynamic table from snapshot ``before`` (0: the empty table) to ``after``."""

    table: DynamicTable
    columns: Sequence[str]
    before: int
    after: int
    row_count: int
    here: pa.Table | None = None

    @property
    def is_compared(self) -> bool:
        """Whether the change is the difference of the rows of both snapshots, and not made from the changelog."""
        return self.before != 0 and _shows_only_compacted(self.table)


def source_delta(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> TableDelta:
    """Return the changes of ``columns`` from snapshot ``before`` (0: the empty table) to ``after``.

    Raises ``SnapshotExpiredError`` or ``NotFoundError`` for a snapshot that has expired.
    """

    def delta(row_count: int, here: pa.Table | None = None) -> TableDelta:
        return TableDelta(table=table, columns=columns, before=before, after=after, row_count=row_count, here=here)

    if before == 0:
        count = stored_rows(table, after)
        return delta(count, _first_rows(table, columns, after) if count <= _ROWS_HERE_MAX else None)
    if _shows_only_compacted(table):
        return delta(stored_rows(table, before) + stored_rows(table, after))
    splits = table.new_read().plan_changes(start_snapshot_id=before, end_snapshot_id=after)
    row_count = sum(split.row_count for split in splits)
    if row_count > _ROWS_HERE_MAX or sum(split.size_bytes for split in splits) > BYTES_HERE_MAX:
        return delta(row_count)
    rows = delta_rows(table, columns, before, after)
    return delta(rows.num_rows, rows)


def _first_rows(table: DynamicTable, columns: Sequence[str], snapshot_id: int) -> pa.Table | None:
    """Return the rows of a snapshot (0: the empty table) with weights; None if its files are large."""
    rows = table.arrow_schema.empty_table().select(list(columns))
    if snapshot_id:
        read = table.new_read(columns=list(columns), snapshot_id=snapshot_id)
        divided = read.plan_divided()
        if divided.unmerged.size_bytes + divided.merged.size_bytes > BYTES_HERE_MAX:
            return None
        # The process that made the snapshot may not have known a column that was added since.
        rows = read.to_table()
    weights = pa.array(np.ones(rows.num_rows, np.int64))
    return rows.append_column(_WEIGHT_FIELD, weights)


def all_few(changed: Mapping[str, SourceDelta]) -> bool:
    """Return whether the changed rows of all sources are in this process."""
    return all(each.here is not None for each in changed.values())


def stored_rows(table: DynamicTable, snapshot_id: int) -> int:
    """Return the number of rows in the files of a snapshot (0: the empty table), before versions are merged."""
    return 0 if snapshot_id == 0 else table.inspect.snapshot(snapshot_id).total_record_count


def delta_rows(table: DynamicTable, columns: Sequence[str], before: int, after: int) -> pa.Table:
    """Read the changes of ``columns`` in this process, as rows with ``_weight``; rows that did not change cancel out.

    ``before`` and ``after`` are snapshot ids. Raises as ``DynamicTable.changes``.
    """
    changed = _SHARED.rows(table, columns, before, after)
    return net_change(changed.old, changed.new)


def net_change(old: pa.Table, new: pa.Table) -> pa.Table:
    """Return the rows that turn ``old`` into ``new``, with ``_weight``; rows of both cancel out."""
    rows = pa.concat_tables([old, new])
    weights = np.repeat(np.array([-1, 1], dtype=np.int64), [old.num_rows, new.num_rows])
    batches = []
    for batch, net in summed_changes(rows, weights):
        signs = 1 - 2 * (net.to_numpy() & RETRACT_BIT).astype(np.int64)
        batches.append(batch.append_column(_WEIGHT_FIELD, pa.array(signs)))
    schema = rows.schema.append(_WEIGHT_FIELD)
    return pa.Table.from_batches(batches, schema)


def _shows_only_compacted(table: DynamicTable) -> bool:
    """Return whether reads leave out rows until a compaction, so that changes and rows are of different moments."""
    options = table.options
    has_vectors = options.deletion_vectors_enabled and not options.deletion_vectors_merge_on_read
    return has_vectors and bool(table.schema.primary_keys)
