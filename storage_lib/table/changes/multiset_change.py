"""Changes between two multisets of rows without a key: deletions and inserts of equal rows by count."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.schema.encoding.canonical_rows import canonical_rows
from storage_lib.schema.types.row_kind import RowKind

_BATCH_ROWS = 131_072


def multiset_difference(old: pa.Table, new: pa.Table) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield the changes (rows, int8 kinds) that turn ``old`` into ``new``; rows with equal counts are omitted."""
    counts = np.repeat(np.array([-1, 1], dtype=np.int64), [old.num_rows, new.num_rows])
    yield from summed_changes(pa.concat_tables([old, new]), counts)


def summed_changes(rows: pa.Table, counts: npt.NDArray[np.int64]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield deletions, then inserts, equivalent to ``counts`` (+1 an insert, -1 a deletion) of all ``rows``."""
    if not rows.num_rows:
        return
    batch = pa.concat_batches(rows.to_batches())
    frame = pl.DataFrame({"row": pl.Series(pl.from_arrow(canonical_rows(batch.columns))), "count": counts})
    summed = (
        frame.with_row_index("at")
        .group_by("row", maintain_order=True)
        .agg(pl.col("at").first(), pl.col("count").sum())
        .select("at", "count")
    )
    places, sums = summed["at"].to_numpy().astype(np.int64), summed["count"].to_numpy()
    for kind, times in ((RowKind.DELETE, -sums), (RowKind.INSERT, sums)):
        repeated = np.repeat(places, np.maximum(times, 0))
        for start in range(0, len(repeated), _BATCH_ROWS):
            taken = batch.take(pa.array(repeated[start : start + _BATCH_ROWS]))
            yield taken, pa.repeat(pa.scalar(int(kind), pa.int8()), taken.num_rows)
