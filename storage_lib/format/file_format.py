"""Interface of a columnar format: write record batches with statistics, read selected columns in small batches.

A format only has files and columns, no keys, levels or snapshots (docs/format.md, "Data files").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTest:
    """Test of rows by some columns, before the others are decoded.

    ``matching`` receives a batch of exactly these columns, as stored in the file, and returns the positions of matching
    rows, ascending.
    """

    columns: tuple[str, ...]
    matching: Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupBounds:
    """Bounds of an integer column that ascends through a file: arrays with one value per row group.

    ``ends`` are the positions in the file after each group's last row.
    """

    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.lows.nbytes + self.highs.nbytes + self.ends.nbytes


class FormatWriter(Protocol):
    """File being written to an output that the caller opens and closes."""

    @property
    def row_group_rows(self) -> int:
        """Number of rows per ``write`` for row groups of a good size."""

    @property
    def size_bytes(self) -> int:
        """Number of bytes written to the output so far; after ``close``, the size of the file."""

    def write(self, rows: pa.Table) -> None:
        """Append the rows as one row group."""

    def close(self) -> Mapping[str, ColumnStats]:
        """Finish the file and return statistics by column; a bound that is not reliable is None."""

    def abandon(self) -> None:
        """Release the resources of a file that will be deleted. Does not raise."""


class FormatReader(Protocol):
    """File opened for reading."""

    @property
    def row_count(self) -> int:
        """Number of rows in the file."""

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the columns in the file."""

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        row_test: RowTest | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the named columns in file order, at most ``batch_rows`` rows at a time.

        Row groups in which no row can match ``predicate`` are skipped; rows that do not match ``row_test`` may be.
        Raises ``CorruptFileError`` if the bytes can't be decoded.
        """


class RowGroupReader(FormatReader, Protocol):
    """File with a footer of statistics, whose row groups can be read separately."""

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        row_test: RowTest | None = None,
        batch_rows: int,
        groups: range | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches as any reader does, of these row groups only (None: all)."""

    def group_statistics(self, columns: Sequence[str]) -> Sequence[tuple[int, Mapping[str, ColumnStats]]]:
        """Return for each row group its number of rows and the statistics of those columns, as far as it has them."""

    def bounds(self, column: str) -> RowGroupBounds | None:
        """Return bounds of an integer column without nulls that ascends through the file; None if unknown."""

    def values(self, column: str, groups: Sequence[int]) -> Sequence[npt.NDArray[np.integer]]:
        """Return the column's values in each of these row groups; the caller owns the arrays.

        Raises ``CorruptFileError`` if the bytes can't be decoded.
        """

    def rows_at(
        self, columns: Sequence[str], positions: npt.NDArray[np.int64], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows at these ascending positions of the file; raises as ``values``."""


class FileFormat(Protocol):
    """Format of data files; readers choose it by the file name's extension."""

    @property
    def extension(self) -> str:
        """File extension, without the dot."""

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` naming a column whose type this format can't store."""

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> FormatWriter:
        """Start a file; encodings are chosen by ``sample``, some of its rows."""

    def reader(self, source: pa.NativeFile, path: str) -> FormatReader:
        """Open a file; ``path`` is for messages. Raises ``CorruptFileError`` if it is not of this format."""
