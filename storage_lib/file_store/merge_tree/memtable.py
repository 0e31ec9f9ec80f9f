"""Rows not yet flushed; a flush sorts them by key and merges the versions of each key."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import InvalidInputError
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.merge_tree.gather import gathered
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_keys import Indices, MergeKeys, merge_keys
from storage_lib.file_store.merge_tree.merge_versions import merge_in_layers
from storage_lib.schema.table_schema import TableSchema

SHARED_ROWS_MIN = 1 / 8
"""A selection of a smaller part of a batch is copied at once, so that a few rows never hold a whole batch in memory."""

CONCAT_BYTES_MAX = 1024 * 1024 * 1024
"""An Arrow string column holds 2 GiB; selections of larger batches are copied before they are concatenated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """Selected rows of a batch (all if ``rows_selected`` is None) that arrived together."""

    rows: pa.RecordBatch
    kinds: pa.Int8Array
    rows_selected: Indices | None
    first_sequence: int

    def __len__(self) -> int:
        return self.rows.num_rows if self.rows_selected is None else len(self.rows_selected)

    @property
    def size_bytes(self) -> int:
        return int(self.rows.nbytes * len(self) / max(1, self.rows.num_rows)) + 9 * len(self)

    def copied(self) -> _Arrival:
        if self.rows_selected is None:
            return self
        selected = pa.array(self.rows_selected)
        return _Arrival(
            rows=self.rows.take(selected),
            kinds=self.kinds.take(selected),
            rows_selected=None,
            first_sequence=self.first_sequence,
        )


class Memtable:
    """Collects the rows of one bucket's writer. Sequence numbers follow arrival."""

    def __init__(self, key_value: KeyValueSchema, merge_function: MergeFunction = DEDUPLICATE) -> None:
        self._key_value = key_value
        self._merge_function = merge_function
        self._arrivals: list[_Arrival] = []
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """Approximate size of the rows, in bytes."""
        return self._size_bytes

    def put(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array, first_sequence: int, rows_selected: Indices | None = None
    ) -> int:
        """Add all rows, or the selected ones in the given order; return their number.

        They get sequence numbers from ``first_sequence`` on. Raises ``InvalidInputError`` for a null in a NOT NULL
        column, or for a kind of change that can't be merged; no row is added then. The batch must not be changed
        afterwards.
        """
        refuse_nulls(rows, self._key_value.schema)
        if not self._merge_function.keeps_newest:
            if rows_selected is not None:
                rows, kinds = rows.take(pa.array(rows_selected)), kinds.take(pa.array(rows_selected))
            rows, kinds = self._merge_function.lifted(rows, kinds)
            rows_selected = None
        arrival = _Arrival(rows=rows, kinds=kinds, rows_selected=rows_selected, first_sequence=first_sequence)
        if len(arrival) == 0:
            return 0
        if len(arrival) < SHARED_ROWS_MIN * rows.num_rows:
            arrival = arrival.copied()
        self._arrivals.append(arrival)
        self._size_bytes += arrival.size_bytes
        return len(arrival)

    def drain(self, *, final: bool = False) -> list[pa.RecordBatch]:
        """Remove and return all rows as a KV batch sorted by key, with the versions of each key merged.

        Returns two batches, the older first, if a merge that is not ``final`` needs a row below another; none if empty.
        If only the newest version counts, just the keys are sorted, and every column is gathered once.
        """
        arrivals = self._arrivals
        self.clear()
        if not arrivals:
            return []
        if sum(arrival.rows.nbytes for arrival in arrivals) > CONCAT_BYTES_MAX:
            arrivals = [arrival.copied() for arrival in arrivals]
        place = _places(arrivals)
        rows = pa.concat_batches([arrival.rows for arrival in arrivals])
        kinds = pa.concat_arrays([arrival.kinds for arrival in arrivals])
        keys = self._keys(rows, place)
        if not self._merge_function.keeps_newest:
            # ``put`` has applied all selections.
            versions = self._key_value.to_key_value(rows, kinds, _sequence_numbers(arrivals))
            return merge_in_layers(versions, keys, self._merge_function, final=final)
        newest = keys.newest(ordered=True)
        taken = newest if place is None else place[newest]
        sequence = _sequence_numbers(arrivals)[newest]
        return [self._key_value.to_key_value(gathered(rows, taken), kinds.take(pa.array(taken)), sequence)]

    def drain_all(self) -> pa.RecordBatch:
        """Remove and return all rows as a KV batch sorted by key, those of one key in order of arrival.

        REQUIRES a merge function that keeps the newest.
        """
        arrivals = [arrival.copied() for arrival in self._arrivals]
        self.clear()
        if not arrivals:
            return pa.RecordBatch.from_pylist([], schema=self._key_value.kv_arrow_schema)
        rows = pa.concat_batches([arrival.rows for arrival in arrivals])
        kinds = pa.concat_arrays([arrival.kinds for arrival in arrivals])
        order, _ = self._keys(rows, None).grouped()
        sequence = _sequence_numbers(arrivals)[order]
        return self._key_value.to_key_value(gathered(rows, order), kinds.take(pa.array(order)), sequence)

    def clear(self) -> None:
        """Discard all rows."""
        self._arrivals, self._size_bytes = [], 0

    def _keys(self, rows: pa.RecordBatch, place: Indices | None) -> MergeKeys:
        columns = self._key_value.key_columns(rows)
        if place is not None:
            columns = [column.take(pa.array(place)) for column in columns]
        return merge_keys(columns, self._key_value.key_types)


def refuse_nulls(rows: pa.RecordBatch, schema: TableSchema) -> None:
    """Raise ``InvalidInputError`` for a null in a NOT NULL column."""
    for field in schema.arrow_schema:
        null_count = 0 if field.nullable else rows.column(field.name).null_count
        if null_count:
            message = (
                f"Column {field.name!r} is NOT NULL, but {null_count} of {rows.num_rows} rows have no value for it; "
                "fill it in or leave those rows out."
            )
            raise InvalidInputError(message)


def _places(arrivals: list[_Arrival]) -> Indices | None:
    """Return the position of each row in the concatenated batches; None if that is every row, in order."""
    if all(arrival.rows_selected is None for arrival in arrivals):
        return None
    starts = np.cumsum([0, *(arrival.rows.num_rows for arrival in arrivals)])
    return np.concatenate(
        [
            start + (np.arange(len(arrival)) if arrival.rows_selected is None else arrival.rows_selected)
            for start, arrival in zip(starts, arrivals, strict=False)
        ]
    )


def _sequence_numbers(arrivals: list[_Arrival]) -> npt.NDArray[np.int64]:
    return np.concatenate(
        [np.arange(arrival.first_sequence, arrival.first_sequence + len(arrival)) for arrival in arrivals]
    )
