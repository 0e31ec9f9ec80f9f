"""Rows that ``sequence.field`` makes older than the stored version of their key, which hides them.

An append ignores them: that is what the option is for. A verb that computes its rows from the stored ones, such as
UPDATE, would report a change and change nothing, so its commit fails instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.merge_tree.merge_function.sequence_order import SequenceOrder
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.table.changes.comparable_frame import comparable_frame
from storage_lib.table.read.point_lookup import PointLookup


@dataclass(frozen=True, kw_only=True)
class LateRows:
    """Compares rows with the versions of ``base``; ``order`` has at least one field."""

    table: str
    lookup: PointLookup
    base: Snapshot | None
    primary_keys: tuple[str, ...]
    order: SequenceOrder

    def refuse(self, rows: pa.RecordBatch) -> None:
        """Raise ``InvalidInputError`` if one of the rows is older than the stored version of its key."""
        given = pa.Table.from_batches([rows])
        columns = [*self.primary_keys, *(name for name in self.order.fields if name not in self.primary_keys)]
        stored = self.lookup.newest_versions(self.base, given.select(list(self.primary_keys)), columns)
        if not stored.num_rows:
            return
        left = comparable_frame(given.select(list(self.primary_keys))).with_row_index("row")
        right = comparable_frame(stored.select(list(self.primary_keys))).with_row_index("stored")
        keys = [name for name in left.columns if name != "row"]
        pairs = left.join(right, on=keys, how="inner").sort("row")
        new = given.select(columns).take(pairs["row"].to_arrow())
        old = stored.select(columns).take(pairs["stored"].to_arrow())
        late = np.flatnonzero(self._is_older(new, old))
        if len(late):
            raise self._refused(new.slice(late[0], 1).to_pylist()[0], old.slice(late[0], 1).to_pylist()[0])

    def _is_older(self, new: pa.Table, old: pa.Table) -> np.ndarray:
        """Return which of the ``new`` rows are older than the one in the same place of ``old``."""
        count = new.num_rows
        both = pa.concat_tables([old, new]).select(list(self.order.fields)).combine_chunks()
        oldest_first = self.order.oldest_first(both.to_batches()[0]) if count else None
        if oldest_first is None:
            return np.zeros(count, dtype=np.bool_)
        age = np.empty(2 * count, dtype=np.int64)
        age[oldest_first] = np.arange(2 * count)
        older: np.ndarray = age[count:] < age[:count]
        return older

    def _refused(self, new: dict[str, object], old: dict[str, object]) -> InvalidInputError:
        key = {name: new[name] for name in self.primary_keys}
        fields = self.order.fields
        message = (
            f"table {self.table}: the row of the key {key} is older than the stored row or deletion of that key: "
            f"sequence.field {', '.join(fields)} is {_told(new, fields)}, and the stored one is {_told(old, fields)}, "
            "so the change would be ignored. Give the row a sequence that is not older, or restrict the change to such "
            "rows; append and INSERT INTO ignore older rows. Nothing was committed"
        )
        return InvalidInputError(message)


def _told(row: dict[str, object], fields: tuple[str, ...]) -> str:
    return ", ".join(repr(row[name]) for name in fields)
