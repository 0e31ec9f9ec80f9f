"""Interface of a columnar format: write record batches with statistics, read selected columns in small batches.

A format knows files and columns, nothing of keys, levels or snapshots (docs/format.md, "Data files").
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
    """A look at some columns before the others are decoded: ``matching`` tells which rows match.

    It gets a batch of exactly these columns, as the file has them, and returns positions in it, ascending.
    """

    columns: tuple[str, ...]
    matching: Callable[[pa.RecordBatch], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupBounds:
    """Of an integer column that ascends through a file: arrays with one value per row group.

    ``ends`` are the positions in the file after each group's last row.
    """

    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.lows.nbytes + self.highs.nbytes + self.ends.nbytes


class FormatWriter(Protocol):
    """One file being written to an output that the caller opened and will close."""

    @property
    def row_group_rows(self) -> int:
        """How many rows one ``write`` should bring, for groups of a good size."""

    @property
    def size_bytes(self) -> int:
        """Bytes that have reached the output so far; after ``close``, the size of the file."""

    def write(self, rows: pa.Table) -> None:
        """Append the rows as one row group."""

    def close(self) -> Mapping[str, ColumnStats]:
        """Finish the file and tell what it holds, per column; a bound that is not known for sure is None."""

    def abandon(self) -> None:
        """Let go of a file that will be deleted. Does not raise."""


class FormatReader(Protocol):
    """One file opened for reading."""

    @property
    def row_count(self) -> int:
        """Rows in the file."""

    @property
    def column_names(self) -> Sequence[str]:
        """Columns in the file."""

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        row_test: RowTest | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """The named columns in file order, at most ``batch_rows`` rows at a time.

        Row groups in which no row can match ``predicate`` are left out; rows that ``row_test`` does not find may be.
        Raises ``CorruptFileError`` when the bytes can't be decoded.
        """


class RowGroupReader(FormatReader, Protocol):
    """One file of which single row groups can be read, and of which its footer tells what they hold."""

    def bounds(self, column: str) -> RowGroupBounds | None:
        """Of a column of integers without nulls that ascends through the file; None if the footer does not tell."""

    def values(self, column: str, groups: Sequence[int]) -> Sequence[npt.NDArray[np.integer]]:
        """The column's values in each of these row groups; the arrays are the caller's.

        Raises ``CorruptFileError`` when the bytes can't be decoded.
        """

    def rows_at(
        self, columns: Sequence[str], positions: npt.NDArray[np.int64], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The rows at these positions of the file, ascending; raises as ``values``."""


class FileFormat(Protocol):
    """A way to lay columns out in a file; readers find it by the file name's extension."""

    @property
    def extension(self) -> str:
        """The end of a file name, without dot."""

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` naming the column whose type this format can't hold."""

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> FormatWriter:
        """Start a file; ``sample`` is some of its rows, from which encodings are chosen."""

    def reader(self, source: pa.NativeFile, path: str) -> FormatReader:
        """Open a file; ``path`` is for messages. Raises ``CorruptFileError`` if it is not of this format."""
