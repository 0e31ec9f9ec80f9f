"""Order of the versions of a key: by the table's sequence fields, then by sequence number.

Option ``sequence.field`` names columns of the table that reflect a row's age better than its arrival. A null is
older than any value, in both sort orders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceOrder:
    """``fields`` are compared one after another; if empty, only sequence numbers count."""

    fields: tuple[str, ...] = ()
    descending: bool = False

    def oldest_first(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64] | None:
        """Return the order that sorts older rows first; None if they are already sorted.

        Rows without a ``_SEQUENCE_NUMBER`` column are in order of arrival.
        """
        names = [name for name in (*self.fields, SEQUENCE_NUMBER) if name in rows.schema.names]
        if names == [SEQUENCE_NUMBER]:
            sequence = rows.column(SEQUENCE_NUMBER).to_numpy()
            return None if bool(np.all(sequence[1:] >= sequence[:-1])) else np.argsort(sequence, kind="stable")
        if not names:
            return None
        # Name columns by position: Polars interprets some names as patterns.
        frame = pl.DataFrame({str(place): pl.from_arrow(rows.column(name)) for place, name in enumerate(names)})
        # Sorted stably, so that of equal versions the later row is newer.
        order = frame.with_row_index("row").sort(
            list(frame.columns),
            descending=[self.descending and name != SEQUENCE_NUMBER for name in names],
            nulls_last=False,
            maintain_order=True,
        )
        return order["row"].to_numpy().astype(np.int64)
