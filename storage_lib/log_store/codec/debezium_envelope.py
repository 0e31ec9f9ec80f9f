"""Debezium's change envelope, independent of its encoding: rows before and after, and an operation.

    kind          changelog-mode upsert             changelog-mode all
    +I            before nothing, after row, c
    -U +U         -U is dropped                     before old, after new, u    adjacent, of one key if there are keys
    +U alone      before nothing, after row, u      before nothing, after row, c
    -U alone      before row, after nothing, d      before row, after nothing, d
    -D            before row, after nothing, d

In mode upsert, a -U is alone if no change of its key follows in the batch, as in an update that moved the row to
another key. In mode all, every ``u`` has both rows, which other readers rely on: the halves of an update that moved
the row to another key or, in a table without keys, to another bucket are a ``d`` and a ``c``. A ``u`` with ``before``
decodes to the pair -U, +U; ``r`` (a snapshot read of Debezium) decodes to +I.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from storage_lib.log_store.codec.log_codec import CorruptRecordError, DecodedChanges
from storage_lib.schema.types.row_kind import RowKind

if TYPE_CHECKING:
    from storage_lib.schema.table_schema import TableSchema

_SLICE_ROWS_MAX = 65_536
_SLICE_BYTES_MAX = 32 << 20
_OPERATIONS = ("c", "u", "d", "r")
_OPERATION_OF_KIND = (b"c", b"d", b"u", b"d")
_OPERATION_ALONE = (b"c", b"d", b"c", b"d")
"""In mode all, of changes that are not half of a pair."""
_KIND_OF_OPERATION = np.array([RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.INSERT], np.int8)
_UPDATE, _DELETE = 1, 2

UNREADABLE = (ValueError, pa.ArrowException, OverflowError, RecursionError)
"""Errors that readers raise for a corrupt value; the last two, for an excessive number and excessive nesting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelopes:
    """Encoded changes: ``before`` and ``after`` per change, or one scalar for all; ``is_record`` None selects all."""

    before: pa.Array | pa.Scalar
    after: pa.Array | pa.Scalar
    operations: pa.Array
    is_record: pa.Array | None


def logged_slices(
    rows: pa.RecordBatch,
    kinds: pa.Array,
    keys_of: Callable[[pa.RecordBatch], pa.Array],
    *,
    with_update_before: bool,
) -> Iterator[tuple[pa.RecordBatch, np.ndarray]]:
    """Yield the changes that the log records, with their kinds as codes, in slices that are encoded one by one.

    ``keys_of`` encodes the keys of rows (binary); called only in mode upsert and if there is a -U.
    """
    codes = kinds.to_numpy(zero_copy_only=False)
    is_before = codes == RowKind.UPDATE_BEFORE
    if not with_update_before and is_before.any():
        is_alone = is_before & _is_last_of_key(keys_of(rows))
        is_logged = ~is_before | is_alone
        rows, codes = rows.filter(pa.array(is_logged)), np.where(is_alone, np.int8(RowKind.DELETE), codes)[is_logged]
    for start, stop in _slices(rows, codes):
        yield rows.slice(start, stop - start), codes[start:stop]


def _is_last_of_key(keys: pa.Array) -> np.ndarray:
    frame = pl.DataFrame({"key": pl.Series(pl.from_arrow(keys))}).with_row_index("index")
    return frame.select(pl.col("index") == pl.col("index").max().over("key"))["index"].to_numpy()


def _slices(rows: pa.RecordBatch, codes: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges that limit memory and do not separate a pair of -U and +U."""
    row_bytes = max(1, rows.nbytes // max(1, len(codes)))
    step = max(1, min(_SLICE_ROWS_MAX, _SLICE_BYTES_MAX // row_bytes))
    start = 0
    while start < len(codes):
        stop = min(len(codes), start + step)
        if stop < len(codes) and codes[stop - 1] == RowKind.UPDATE_BEFORE:
            stop += 1
        yield start, stop
        start = stop


def enveloped(
    spelled: pa.Array, codes: np.ndarray, keys: pa.Array | None, *, with_update_before: bool, nothing: bytes
) -> Envelopes:
    """Build envelopes from encoded rows (binary), kinds, and keys that identify pairs (None: any adjacent -U, +U)."""
    is_pair = np.zeros(len(codes), bool)
    if with_update_before:
        is_pair[:-1] = (codes[:-1] == RowKind.UPDATE_BEFORE) & (codes[1:] == RowKind.UPDATE_AFTER)
        if keys is not None:
            is_pair[:-1] &= pc.equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    is_retract = (codes == RowKind.UPDATE_BEFORE) | (codes == RowKind.DELETE)
    before, after = _or_nothing(spelled, is_retract, nothing), _or_nothing(spelled, ~is_retract, nothing)
    operations = pa.array(_OPERATION_ALONE if with_update_before else _OPERATION_OF_KIND).take(pa.array(codes))
    if not is_pair.any():
        return Envelopes(before=before, after=after, operations=operations, is_record=None)
    next_rows = spelled.take(pa.array(np.minimum(np.arange(1, len(codes) + 1), len(codes) - 1)))
    is_record = np.ones(len(codes), bool)
    is_record[1:] = ~is_pair[:-1]
    return Envelopes(
        before=before,
        after=pc.if_else(pa.array(is_pair), next_rows, after),
        operations=pc.if_else(pa.array(is_pair), b"u", operations),
        is_record=pa.array(is_record),
    )


def opened(
    before: pa.Array,
    after: pa.Array,
    operations: pa.Array,
    schema: TableSchema,
    columns: Callable[[Sides], list[pa.Array]],
) -> DecodedChanges:
    """Decode records (``before`` and ``after`` are structs) to changes. Raises ``ValueError`` for an invalid one."""
    codes = pc.index_in(operations, pa.array(_OPERATIONS)).to_numpy(zero_copy_only=False)
    if np.isnan(codes.astype(np.float64)).any():
        message = "unknown op; expected c, u, d or r"
        raise ValueError(message)
    codes = codes.astype(np.int64)
    has_before = before.is_valid().to_numpy(zero_copy_only=False)
    has_after = after.is_valid().to_numpy(zero_copy_only=False)
    is_delete = codes == _DELETE
    if not np.where(is_delete, has_before, has_after).all():
        message = "a deletion without before, or another change without after"
        raise ValueError(message)
    is_pair = (codes == _UPDATE) & has_before
    record_indices = np.repeat(np.arange(len(codes)), 1 + is_pair)
    kinds, is_before = _KIND_OF_OPERATION[codes[record_indices]], is_delete[record_indices]
    if is_pair.any():
        first_of_pair = np.flatnonzero(is_pair) + np.arange(np.count_nonzero(is_pair))
        kinds[first_of_pair], is_before[first_of_pair] = RowKind.UPDATE_BEFORE, True
    sides = Sides(before, after, record_indices if is_pair.any() else None, is_before)
    rows = pa.RecordBatch.from_arrays(columns(sides), schema=schema.arrow_schema)
    return DecodedChanges(rows=rows, kinds=pa.array(kinds), record_indices=record_indices)


def decoded_but_tombstones(values: pa.Array, decode: Callable[[pa.Array], DecodedChanges]) -> DecodedChanges:
    """Apply ``decode`` to the values that are not null; a null is a tombstone and is skipped.

    Raises ``CorruptRecordError`` with the position of the first value that it can't read.
    """
    record_indices = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    present = values.drop_null()
    try:
        changes = decode(present)
    except UNREADABLE as error:
        raise first_corrupt(
            len(present), lambda start, stop: decode(present[start:stop]), error, record_indices
        ) from error
    return DecodedChanges(rows=changes.rows, kinds=changes.kinds, record_indices=record_indices[changes.record_indices])


def first_corrupt(
    count: int, decode: Callable[[int, int], object], error: Exception, record_indices: np.ndarray
) -> CorruptRecordError:
    """Find the first corrupt value, and its error, by bisecting a batch for which ``decode(start, stop)`` raises."""
    start, stop = 0, count
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            decode(start, middle)
        except UNREADABLE as left_error:
            stop, error = middle, left_error
        else:
            start = middle
    if count > 1:
        try:
            decode(start, stop)
        except UNREADABLE as record_error:
            error = record_error
    return CorruptRecordError(int(record_indices[start]), str(error))


@dataclass(frozen=True, slots=True)
class Sides:
    """Columns selected per row from ``before`` or ``after``; ``record_indices`` is None if each record is one row."""

    before: pa.Array
    after: pa.Array
    record_indices: np.ndarray | None
    is_before: np.ndarray

    def has(self, name: str) -> bool:
        """Whether there is a column of that name."""
        return bool(self.after.type.get_field_index(name) >= 0)

    def column(self, name: str) -> pa.Array:
        """Return the values of one column."""
        if not self.is_before.any():
            return pc.struct_field(self.after, name)
        if self.is_before.all():
            return pc.struct_field(self.before, name)
        before, after = pc.struct_field(self.before, name), pc.struct_field(self.after, name)
        if self.record_indices is not None:
            indices = pa.array(self.record_indices)
            before, after = before.take(indices), after.take(indices)
        return pc.if_else(pa.array(self.is_before), before, after)


def _or_nothing(spelled: pa.Array, has_row: np.ndarray, nothing: bytes) -> pa.Array | pa.Scalar:
    if has_row.all():
        return spelled
    none = pa.scalar(nothing, pa.binary())
    return pc.if_else(pa.array(has_row), spelled, none) if has_row.any() else none
