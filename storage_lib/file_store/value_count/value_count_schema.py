"""The columns of a table without primary key: the whole row is the key, and a count says how often it is there.

In memory and in a data file:  _SEQUENCE_NUMBER, _VALUE_KIND, all table columns, _VALUE_COUNT.

Rows are sorted by their canonical bytes (schema/encoding/canonical_rows.py), one per distinct row. The count is
negative where deletions came before what they delete; ``_VALUE_KIND`` is then that of a deletion, and readers omit
the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from storage_lib.file_store.data_file.field_ids import with_field_id
from storage_lib.file_store.data_file.file_layout import FileTally, KeyFacts
from storage_lib.file_store.data_file.key_value import (
    RETRACT_BIT,
    SEQUENCE_NUMBER,
    VALUE_COUNT,
    VALUE_KIND,
    KeyValueSchema,
)
from storage_lib.schema.encoding.binary_row import encode_row
from storage_lib.schema.encoding.canonical_rows import canonical_rows
from storage_lib.schema.filter.column_stats import ColumnStats, SimpleStats
from storage_lib.schema.types.data_types import DataType, parse_data_type

COUNT_FIELD = pa.field(VALUE_COUNT, pa.int64(), nullable=False)
COUNT_FIELD_ID = 2_147_483_644
BOUND_BYTES_MAX = 256
"""Of a long row, metadata keeps the beginning, as a bound that is safe."""

_BYTES = parse_data_type("BYTES")


@dataclass(frozen=True, kw_only=True)
class ValueCountSchema(KeyValueSchema):
    """A ``KeyValueSchema`` whose key is in no column of its own."""

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """All table columns: what has to be read to know the key."""
        return tuple(field.name for field in self.schema.fields)

    @cached_property
    def key_types(self) -> tuple[DataType, ...]:
        """Bytes."""
        return (_BYTES,)

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """All table columns and the count."""
        return (*self.key_names, VALUE_COUNT)

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Empty: rows are sorted by the bytes of the whole row, whose order differs from that of the values."""
        return ()

    def _kv_arrow_schema(self) -> pa.Schema:
        return super()._kv_arrow_schema().append(COUNT_FIELD)

    def _file_arrow_schema(self) -> pa.Schema:
        return super()._file_arrow_schema().append(with_field_id(COUNT_FIELD, COUNT_FIELD_ID))

    def to_file(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same columns."""
        return pa.RecordBatch.from_arrays(rows.columns, schema=self.file_arrow_schema)

    def key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """The canonical bytes of each row."""
        return [canonical_rows([rows.column(name) for name in self.key_names])]

    def key_bytes(self, rows: pa.RecordBatch, index: int) -> bytes:
        """One row's key, in full."""
        (keys,) = self.key_columns(rows.slice(index, 1))
        return _serialized(keys[0].as_py())

    def new_tally(self) -> FileTally:
        """For one data file."""
        return CountTally(self)


class CountTally:
    """Bounds of the rows of a data file, its sequence interval, and how many of its rows only delete."""

    def __init__(self, layout: ValueCountSchema) -> None:
        self._layout = layout
        self._delete_row_count = 0
        self._first: bytes | None = None
        self._last_batch: pa.RecordBatch | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """The next rows in the order of their bytes."""
        if self._first is None:
            self._first = self._key(rows, 0)
        self._last_batch = rows
        self._delete_row_count += int((rows.column(VALUE_KIND).to_numpy() & RETRACT_BIT).sum())

    def facts(self, stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Long rows as bounds of them."""
        assert self._first is not None  # noqa: S101  a file is only opened for rows
        assert self._last_batch is not None  # noqa: S101
        low = _serialized(self._first[:BOUND_BYTES_MAX])
        high = _serialized(_upper_bound(self._key(self._last_batch, self._last_batch.num_rows - 1)))
        sequence = stats[SEQUENCE_NUMBER]
        return KeyFacts(
            min_key=low,
            max_key=high,
            key_stats=SimpleStats(min_values=low, max_values=high, null_counts=(0,)),
            min_sequence_number=sequence.min,
            max_sequence_number=sequence.max,
            delete_row_count=self._delete_row_count,
        )

    def _key(self, rows: pa.RecordBatch, index: int) -> bytes:
        (key,) = self._layout.comparable_key(self._layout.key_bytes(rows, index))
        assert isinstance(key, bytes)  # noqa: S101  of this layout
        return key


def everything() -> tuple[bytes, bytes]:
    """Two serialized keys between which all others lie."""
    return _serialized(b""), _serialized(b"\xff")


def _serialized(key: bytes) -> bytes:
    return encode_row([key], (_BYTES,))


def _upper_bound(key: bytes) -> bytes:
    """``key``, or something short above it."""
    if len(key) <= BOUND_BYTES_MAX:
        return key
    # Every key begins with 01 or 02, so there is a byte to raise.
    beginning = key[:BOUND_BYTES_MAX].rstrip(b"\xff")
    return beginning[:-1] + bytes((beginning[-1] + 1,))
