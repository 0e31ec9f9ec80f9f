"""Layout of a table's data files, and their metadata other than column statistics.

Rows go through the writer as batches of the layout's own: table columns with whatever the kind of table needs besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from storage_lib.schema.filter.column_stats import ColumnStats, SimpleStats
from storage_lib.schema.table_schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """The part of a file's metadata that depends on the kind of table; keys are serialized BinaryRows."""

    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    delete_row_count: int


class FileTally(Protocol):
    """Watches the rows of one file pass."""

    def add(self, rows: pa.RecordBatch) -> None:
        """The next rows, never none."""

    def facts(self, stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Return the totals; ``stats`` are those of the file's columns. At least one row has been added."""


class FileLayout(Protocol):
    """The columns of one table's batches and data files. Frozen and picklable."""

    @property
    def schema(self) -> TableSchema:
        """The table's."""

    @property
    def file_arrow_schema(self) -> pa.Schema:
        """Of a data file, with Parquet field ids."""

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The columns by whose values the rows of each file are sorted; none if they are not."""

    def field(self, name: str) -> pa.Field:
        """The Arrow field of any column that can be read from a data file."""

    def projection(self, names: Sequence[str]) -> pa.Schema:
        """The Arrow schema of those columns, in that order."""

    def to_file(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of a data file for a batch; nothing is copied."""

    def new_tally(self) -> FileTally:
        """For one file."""
