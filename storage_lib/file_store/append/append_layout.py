"""Columns of an append table's data files: only the table's columns, as in Paimon's append tables.

Before it is written, a batch starts with ``_SEQUENCE_NUMBER``; only the file's metadata keeps that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from storage_lib.file_store.data_file.field_ids import with_field_id
from storage_lib.file_store.data_file.file_layout import KeyFacts
from storage_lib.file_store.data_file.key_value import SEQUENCE_FIELD, SEQUENCE_NUMBER
from storage_lib.schema.encoding.binary_row import EMPTY_ROW
from storage_lib.schema.filter.column_stats import ColumnStats, SimpleStats
from storage_lib.schema.table_schema import TableSchema

_NO_KEY_STATS = SimpleStats(min_values=EMPTY_ROW, max_values=EMPTY_ROW, null_counts=())


@dataclass(frozen=True, kw_only=True)
class AppendLayout:
    """A ``FileLayout``. Frozen and picklable."""

    schema: TableSchema

    @cached_property
    def value_names(self) -> tuple[str, ...]:
        """All table columns in schema order."""
        return tuple(field.name for field in self.schema.fields)

    @cached_property
    def file_arrow_schema(self) -> pa.Schema:
        """Arrow schema of a data file, with Parquet field ids."""
        columns = self.schema.arrow_schema
        return pa.schema(
            [with_field_id(columns.field(field.name), field.id, field.type) for field in self.schema.fields]
        )

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Empty: rows are in order of arrival."""
        return ()

    def field(self, name: str) -> pa.Field:
        """Return the Arrow field of a table column."""
        return self.schema.arrow_schema.field(name)

    def projection(self, names: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of those columns, in that order."""
        return pa.schema([self.field(name) for name in names])

    def numbered(self, rows: pa.RecordBatch, first_sequence: int) -> pa.RecordBatch:
        """Return table rows with sequence numbers from ``first_sequence`` on, without copying columns."""
        sequence = pa.array(np.arange(first_sequence, first_sequence + rows.num_rows, dtype=np.int64))
        schema = pa.schema([SEQUENCE_FIELD, *self.schema.arrow_schema])
        return pa.RecordBatch.from_arrays([sequence, *rows.columns], schema=schema)

    def to_file(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a data file for a numbered batch, without copying."""
        return pa.RecordBatch.from_arrays(rows.columns[1:], schema=self.file_arrow_schema)

    def new_tally(self) -> SequenceTally:
        """Return a new tally for one data file."""
        return SequenceTally()


class SequenceTally:
    """Sequence interval of a data file without keys and deletions."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._last = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows with ascending sequence numbers."""
        numbers = rows.column(SEQUENCE_NUMBER)
        if self._first is None:
            self._first = numbers[0].as_py()
        self._last = numbers[-1].as_py()

    def facts(self, _stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Return the sequence interval, with empty keys as the format requires."""
        assert self._first is not None  # noqa: S101  a file is only opened for rows
        return KeyFacts(
            min_key=EMPTY_ROW,
            max_key=EMPTY_ROW,
            key_stats=_NO_KEY_STATS,
            min_sequence_number=self._first,
            max_sequence_number=self._last,
            delete_row_count=0,
        )
