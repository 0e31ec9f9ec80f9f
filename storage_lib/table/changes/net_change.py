"""Net change between two contents of one bucket: deleted, changed and new rows, without equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
import pyarrow as pa

from storage_lib.schema.types.row_kind import RowKind
from storage_lib.table.changes.comparable_frame import column_name, comparable_frame


def net_change(
    old: pa.Table, new: pa.Table, key: Sequence[str], *, with_update_before: bool = False
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield the changes (rows, int8 kinds) that turn ``old`` into ``new``; both have one row per ``key``.

    A changed row is ``+U``, after its ``-U`` if ``with_update_before``. Nulls and NaNs equal themselves; -0.0 and 0.0
    differ.
    """
    if not old.num_rows or not new.num_rows:
        yield from _whole(old, RowKind.DELETE)
        yield from _whole(new, RowKind.INSERT)
        return
    before, after = _indexed(old), _indexed(new)
    key = [column_name(old.schema.get_field_index(name)) for name in key]
    names = [column_name(position) for position in range(old.num_columns)]
    different = after.join(before, on=names, how="anti", nulls_equal=True)
    deleted = before.join(after, on=key, how="anti")
    added = different.join(before, on=key, how="anti")
    changed = different.join(before.select([*key, pl.col(_INDEX).alias(_OLD_INDEX)]), on=key, how="inner").sort(_INDEX)
    yield from _changes(old, deleted[_INDEX], RowKind.DELETE)
    if with_update_before:
        yield from _pairs(old, new, changed)
    else:
        yield from _changes(new, changed[_INDEX], RowKind.UPDATE_AFTER)
    yield from _changes(new, added[_INDEX], RowKind.INSERT)


_INDEX, _OLD_INDEX = "index", "old_index"


def _indexed(table: pa.Table) -> pl.DataFrame:
    return comparable_frame(table).with_row_index(_INDEX)


def _changes(table: pa.Table, indices: pl.Series, kind: RowKind) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    yield from _whole(table.take(indices.sort().to_arrow()), kind)


def _whole(table: pa.Table, kind: RowKind) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    for batch in table.combine_chunks().to_batches():
        yield batch, pa.repeat(pa.scalar(int(kind), pa.int8()), batch.num_rows)


def _pairs(old: pa.Table, new: pa.Table, changed: pl.DataFrame) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield old and new version of every changed row, adjacent."""
    count = changed.height
    if not count:
        return
    rows = pa.concat_tables([old.take(changed[_OLD_INDEX].to_arrow()), new.take(changed[_INDEX].to_arrow())])
    interleaved = pl.int_range(2 * count, eager=True)
    order = (interleaved // 2) + (interleaved % 2) * count
    kinds = pa.array([int(RowKind.UPDATE_BEFORE), int(RowKind.UPDATE_AFTER)] * count, pa.int8())
    for batch in rows.take(order.to_arrow()).combine_chunks().to_batches(max_chunksize=2 * count):
        yield batch, kinds
