"""A row in the merge tree: the table's columns with a sequence number and a kind, ordered by key.

In memory (a "KV batch"):  _SEQUENCE_NUMBER, _VALUE_KIND, all table columns.
In a data file:            _KEY_<c> of each trimmed primary key column, then the same (docs/format.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.file_store.data_file.comparable_key import ComparableKey, comparable_keys
from storage_lib.file_store.data_file.field_ids import with_field_id
from storage_lib.file_store.data_file.file_layout import FileTally, KeyFacts
from storage_lib.schema.encoding.binary_row import encode_row
from storage_lib.schema.filter.column_stats import ColumnStats, encode_stats
from storage_lib.schema.table_schema import VALUE_COUNT_COLUMN, TableSchema
from storage_lib.schema.types.data_types import DataType

SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"
VALUE_COUNT = VALUE_COUNT_COLUMN
KEY_PREFIX = "_KEY_"

KEY_FIELD_ID_START = 1_073_741_823
SEQUENCE_NUMBER_FIELD_ID = 2_147_483_646
VALUE_KIND_FIELD_ID = 2_147_483_645

RETRACT_BIT = 1
KEY_STATS_LENGTH = 128
"""Maximum length, in characters or bytes, of a key column's bounds; the keys themselves are not truncated."""

SEQUENCE_FIELD = pa.field(SEQUENCE_NUMBER, pa.int64(), nullable=False)
KIND_FIELD = pa.field(VALUE_KIND, pa.int8(), nullable=False)


@dataclass(frozen=True, kw_only=True)
class KeyValueSchema:
    """Columns of one table's KV batches and data files. Frozen and picklable."""

    schema: TableSchema

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """Columns of the trimmed primary key, which identifies rows within a partition."""
        return tuple(field.name for field in self.schema.key_fields)

    @cached_property
    def key_types(self) -> tuple[DataType, ...]:
        """The types of the key columns."""
        return tuple(field.type for field in self.schema.key_fields)

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """All table columns in schema order."""
        return tuple(field.name for field in self.schema.fields)

    @cached_property
    def kv_arrow_schema(self) -> pa.Schema:
        """Arrow schema of a KV batch."""
        return self._kv_arrow_schema()

    @cached_property
    def file_arrow_schema(self) -> pa.Schema:
        """Arrow schema of a data file, with the field ids stored in it."""
        return self._file_arrow_schema()

    # For subclasses: while a cached property calls ``super()`` for it, other threads would see the base's value.
    def _kv_arrow_schema(self) -> pa.Schema:
        return pa.schema([SEQUENCE_FIELD, KIND_FIELD, *self.schema.arrow_schema])

    def _file_arrow_schema(self) -> pa.Schema:
        columns = self.schema.arrow_schema
        keys = [
            with_field_id(columns.field(field.name).with_name(KEY_PREFIX + field.name), KEY_FIELD_ID_START + field.id)
            for field in self.schema.key_fields
        ]
        system = [
            with_field_id(SEQUENCE_FIELD, SEQUENCE_NUMBER_FIELD_ID),
            with_field_id(KIND_FIELD, VALUE_KIND_FIELD_ID),
        ]
        values = [with_field_id(columns.field(field.name), field.id, field.type) for field in self.schema.fields]
        return pa.schema([*keys, *system, *values])

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Columns of the key."""
        return self.key_names

    def field(self, name: str) -> pa.Field:
        """Return the Arrow field of a table column or of a system column of a KV batch."""
        return self.kv_arrow_schema.field(name)

    def projection(self, names: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of those columns of a KV batch, in that order."""
        return pa.schema([self.field(name) for name in names])

    def to_file(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a data file for a KV batch, without copying."""
        keys = [rows.column(name) for name in self.key_names]
        return pa.RecordBatch.from_arrays([*keys, *rows.columns], schema=self.file_arrow_schema)

    def to_key_value(
        self, rows: pa.RecordBatch, kinds: pa.Int8Array, sequence: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Return a KV batch of table rows, without copying."""
        return pa.RecordBatch.from_arrays([pa.array(sequence), kinds, *rows.columns], schema=self.kv_arrow_schema)

    def key_columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns, of ``key_types``; ``rows`` has at least the columns ``key_names``."""
        return [rows.column(name) for name in self.key_names]

    def new_tally(self) -> FileTally:
        """Return a new tally for one data file."""
        return KeyTally(self)

    def key_bytes(self, rows: pa.RecordBatch, index: int) -> bytes:
        """Return the serialized BinaryRow of one row's key."""
        values = [rows.column(name)[index].as_py() for name in self.key_names]
        return encode_row(values, self.key_types)

    @cached_property
    def comparable_key(self) -> Callable[[bytes], ComparableKey]:
        """Function from a serialized key, or bound of keys, to a tuple that compares in key order."""
        return comparable_keys(self.key_types)


class KeyTally:
    """Key interval, sequence interval and deletions of a data file, computed from its KV batches."""

    def __init__(self, key_value: KeyValueSchema) -> None:
        self._key_value = key_value
        self._delete_row_count = 0
        self._min_key: bytes | None = None
        self._last_batch: pa.RecordBatch | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows in key order."""
        if self._min_key is None:
            self._min_key = self._key_value.key_bytes(rows, 0)
        self._last_batch = rows
        kinds = rows.column(VALUE_KIND).to_numpy()
        self._delete_row_count += int((kinds & RETRACT_BIT).sum())

    def facts(self, stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Return the first and last key, and the bounds of keys and sequence numbers from the columns' statistics."""
        assert self._min_key is not None  # noqa: S101  a file is only opened for rows
        assert self._last_batch is not None  # noqa: S101
        key_fields = self._key_value.schema.key_fields
        sequence = stats[SEQUENCE_NUMBER]
        return KeyFacts(
            min_key=self._min_key,
            max_key=self._key_value.key_bytes(self._last_batch, self._last_batch.num_rows - 1),
            key_stats=encode_stats(
                [stats[KEY_PREFIX + field.name] for field in key_fields],
                key_fields,
                truncate=KEY_STATS_LENGTH,
            ),
            min_sequence_number=_integer(sequence.min),
            max_sequence_number=_integer(sequence.max),
            delete_row_count=self._delete_row_count,
        )


def _integer(value: object) -> int:
    assert isinstance(value, int)  # noqa: S101  statistics of an int64 column without nulls
    return value
