"""Layout of a table's data files, and their metadata other than column statistics.

Rows reach the writer as batches of the layout: table columns and any system columns that the table's kind adds.
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
    """Part of a file's metadata that depends on the kind of table; keys are serialized BinaryRows."""

    min_key: bytes
    max_key: bytes
    key_stats: SimpleStats
    min_sequence_number: int
    max_sequence_number: int
    delete_row_count: int


class FileTally(Protocol):
    """Collects metadata of one file from its rows."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, at least one."""

    def facts(self, stats: Mapping[str, ColumnStats]) -> KeyFacts:
        """Return the totals; ``stats`` are those of the file's columns. At least one row has been added."""


class FileLayout(Protocol):
    """Columns of one table's batches and data files. Frozen and picklable."""

    @property
    def schema(self) -> TableSchema:
        """Schema of the table."""

    @property
    def file_arrow_schema(self) -> pa.Schema:
        """Arrow schema of a data file, with Parquet field ids."""

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """Columns by which the rows of each file are sorted; empty if they are not."""

    def field(self, name: str) -> pa.Field:
        """Return the Arrow field of any column that can be read from a data file."""

    def projection(self, names: Sequence[str]) -> pa.Schema:
        """Return the Arrow schema of those columns, in that order."""

    def to_file(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of a data file for a batch, without copying."""

    def new_tally(self) -> FileTally:
        """Return a new tally for one file."""
