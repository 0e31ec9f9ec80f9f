"""Columns of a table without primary key: the whole row is the key, with a count of its occurrences.

In memory and in a data file:  _SEQUENCE_NUMBER, _VALUE_KIND, all table columns, _VALUE_COUNT.

Rows are sorted by their canonical bytes (schema/encoding/canonical_rows.py), one per distinct row. The count is
negative if deletions came before the deleted rows; ``_VALUE_KIND`` is then that of a deletion, and readers omit
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
"""Longer rows are truncated in metadata, to a safe bound."""

_BYTES = parse_data_type("BYTES")


@dataclass(frozen=True, kw_only=True)
class ValueCountSchema(KeyValueSchema):
    """A ``KeyValueSchema`` without separate key columns."""

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """All table columns, which make up the key."""
        return tuple(field.name for field in self.schema.fields)

    @cached_property
    def key_types(self) -> tuple[DataType, ...]:
        """Type of the canonical bytes."""
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
        """Return the same columns."""
        return pa.RecordBatch.from_arrays(rows.columns, schema=self.file_arrow_schema)

    def key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the canonical bytes of each row."""
        return [canonical_rows([rows.column(name) for name in self.key_names])]

    def key_bytes(self, rows: pa.RecordBatch, index: int) -> bytes:
        """Return the complete key of one row."""
        (keys,) = self.key_columns(rows.slice(index, 1))
        return _serialized(keys[0].as_py())

    def new_tally(self) -> FileTally:
        """Return a new tally for one data file."""
        return CountTally(self)


class CountTally:
    """Row bounds, sequence interval and number of delete rows of a data file."""

    def __init__(self, layout: ValueCountSchema) -> None:
        self._layout = layout
        self._delete_row_count = 0
        self._first: bytes | None = None
        self._last_batch: pa.RecordBatch | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows in the order of their bytes."""
        if self._first is None:
            self._first = self._key(rows, 0)
        self._last_batch = rows
        self._delete_row_count += int((rows.column(VALUE_KIND).to_numpy() & RETRACT_BIT).sum())

    def facts(self, stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Return the totals; keys of long rows are truncated to safe bounds."""
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
    """Return two serialized keys that include all others between them."""
    return _serialized(b""), _serialized(b"\xff")


def _serialized(key: bytes) -> bytes:
    return encode_row([key], (_BYTES,))


def _upper_bound(key: bytes) -> bytes:
    """Return ``key``, or a short upper bound of it."""
    if len(key) <= BOUND_BYTES_MAX:
        return key
    # Every key starts with 01 or 02, so a byte can be incremented.
    beginning = key[:BOUND_BYTES_MAX].rstrip(b"\xff")
    return beginning[:-1] + bytes((beginning[-1] + 1,))
