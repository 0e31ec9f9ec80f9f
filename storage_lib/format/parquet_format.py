"""Parquet files of the file store: zstd level 1, decimals as integers, field ids, statistics (docs/format.md).

Row groups are small (32,768 rows or 16 MiB, whichever is less): a lookup decodes a third of the data compared with
groups four times as large, while writing and scanning cost the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.format.file_format import RowGroupBounds, RowTest
from storage_lib.format.parquet_encoding import column_encodings
from storage_lib.format.parquet_statistics import column_indices, file_statistics, row_group_statistics
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.types.nested_arrays import with_filled_variants
from storage_lib.schema.types.nested_types import has_nanoseconds
from storage_lib.schema.types.variant import has_variants

ROW_GROUP_ROWS_MAX = 32_768
_TESTED_ROWS = 131_072
ROW_GROUP_ROWS_MIN = 1_024
ROW_GROUP_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """Settings for writing Parquet files; reading needs none of them."""

    compression: str = "zstd"
    compression_level: int | None = 1
    row_group_rows_max: int = ROW_GROUP_ROWS_MAX
    extension: str = field(default="parquet", init=False)

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` for nanoseconds: they need INT96, which other engines truncate to micros."""
        for column in schema:
            if has_nanoseconds(column.type):
                message = (
                    f"Column {column.name!r} has a timestamp finer than a microsecond, which other engines "
                    "would cut; declare it TIMESTAMP(6)."
                )
                raise InvalidInputError(message)

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> ParquetFileWriter:
        """Start a file with encodings that suit ``sample``."""
        row_bytes = max(1, sample.nbytes // max(1, sample.num_rows))
        rows = min(self.row_group_rows_max, max(ROW_GROUP_ROWS_MIN, ROW_GROUP_BYTES // row_bytes))
        encodings = column_encodings(sample, self.compression, self.compression_level)
        parquet = pq.ParquetWriter(
            output,
            schema,
            compression=dict(encodings.compression),
            compression_level=dict(encodings.compression_level) or None,
            use_dictionary=list(encodings.dictionary) or False,
            column_encoding=dict.fromkeys(encodings.differences, "DELTA_BINARY_PACKED") or None,
            write_statistics=True,
            store_decimal_as_integer=True,
            store_schema=False,
            version="2.6",
            write_page_checksum=True,
        )
        return ParquetFileWriter(output, schema, parquet, rows)

    def reader(self, source: pa.NativeFile, path: str) -> ParquetFileReader:
        """Open a file and read its footer."""
        try:
            return ParquetFileReader(pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True), path)
        except (pa.ArrowException, OSError) as error:
            message = f"{path} is not a readable Parquet file: {error}"
            raise CorruptFileError(message) from error


class ParquetFileWriter:
    """Parquet file being written to the output."""

    def __init__(
        self, output: pa.NativeFile, schema: pa.Schema, parquet: pq.ParquetWriter, row_group_rows: int
    ) -> None:
        self.row_group_rows = row_group_rows
        self._output = output
        self._parquet = parquet
        nested = ((index, each.type) for index, each in enumerate(schema) if pa.types.is_nested(each.type))
        self._with_variants = {index: type_ for index, type_ in nested if has_variants(type_)}
        self._floats_without_nan = {column.name for column in parquet.schema if pa.types.is_floating(column.type)}

    @property
    def size_bytes(self) -> int:
        """Number of bytes written so far."""
        return int(self._output.tell())

    def write(self, rows: pa.Table) -> None:
        """Append one row group."""
        for name in tuple(self._floats_without_nan):
            if pc.any(pc.is_nan(rows.column(name))).as_py():
                self._floats_without_nan.discard(name)
        for index, type_ in self._with_variants.items():
            chunks = [with_filled_variants(chunk, type_) for chunk in rows.column(index).chunks]
            rows = rows.set_column(index, rows.schema.field(index), pa.chunked_array(chunks, type_))
        self._parquet.write_table(rows, row_group_size=max(1, rows.num_rows))

    def close(self) -> Mapping[str, ColumnStats]:
        """Write the footer, and return its statistics."""
        collected: list[pq.FileMetaData] = []
        # pyarrow only returns the footer through this list; otherwise the file would have to be read again.
        self._parquet._metadata_collector = collected  # noqa: SLF001  no public way after construction
        self._parquet.close()
        return file_statistics(collected[0], trusted_floats=frozenset(self._floats_without_nan))

    def abandon(self) -> None:
        """Close the writer; pyarrow would otherwise write the footer later, when it deletes the writer."""
        with suppress(Exception):
            self._parquet.close()


class ParquetFileReader:
    """Parquet file whose footer has been read."""

    def __init__(self, parquet: pq.ParquetFile, path: str) -> None:
        self._parquet = parquet
        self._path = path

    @property
    def row_count(self) -> int:
        """Number of rows in the file."""
        return int(self._parquet.metadata.num_rows)

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the columns in the file."""
        names: list[str] = self._parquet.schema_arrow.names
        return names

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        row_test: RowTest | None = None,
        batch_rows: int,
        groups: range | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of the row groups that may have a match; with a row test, not much more than matching rows."""
        matching = self._matching_row_groups(predicate)
        if groups is not None:
            matching = [group for group in matching if group in groups]
        if row_test is None:
            yield from self._decoded(matching, columns, batch_rows)
            return
        found = self._found_rows(matching, row_test)
        if not len(found):
            return
        wanted, rows = self._groups_of(matching, found)
        for batch, here in self._batches_with(wanted, rows, columns, batch_rows):
            yield batch if len(here) > batch.num_rows // 2 else batch.take(pa.array(here))

    def group_statistics(self, columns: Sequence[str]) -> Sequence[tuple[int, Mapping[str, ColumnStats]]]:
        """Return for each row group its number of rows and the statistics of those columns, as far as it has them."""
        metadata = self._parquet.metadata
        indices = {name: index for name, index in column_indices(metadata).items() if name in columns}
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        return [(group.num_rows, row_group_statistics(group, indices)) for group in groups]

    def bounds(self, column: str) -> RowGroupBounds | None:
        """Return bounds of an integer column without nulls that ascends through the file; None if unknown."""
        metadata = self._parquet.metadata
        index = column_indices(metadata).get(column)
        if index is None:
            return None
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        stats = [row_group_statistics(group, {column: index})[column] for group in groups]
        if not all(isinstance(each.min, int) and isinstance(each.max, int) and each.null_count == 0 for each in stats):
            return None
        return RowGroupBounds(
            lows=np.array([each.min for each in stats], dtype=np.int64),
            highs=np.array([each.max for each in stats], dtype=np.int64),
            ends=np.cumsum([group.num_rows for group in groups], dtype=np.int64),
        )

    def values(self, column: str, groups: Sequence[int]) -> Sequence[npt.NDArray[np.integer]]:
        """Return the column's values in each of these row groups."""
        parts = [batch.column(0).to_numpy() for batch in self._decoded(list(groups), (column,), _TESTED_ROWS)]
        rows = [self._parquet.metadata.row_group(group).num_rows for group in groups]
        return [part.copy() for part in np.split(np.concatenate(parts), np.cumsum(rows)[:-1])]

    def rows_at(
        self, columns: Sequence[str], positions: npt.NDArray[np.int64], *, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows at these ascending positions of the file."""
        wanted, rows = self._groups_of(range(self._parquet.metadata.num_row_groups), positions)
        for batch, here in self._batches_with(wanted, rows, columns, batch_rows):
            yield batch.take(pa.array(here))

    def _batches_with(
        self, groups: list[int], rows: npt.NDArray[np.int64], columns: Sequence[str], batch_rows: int
    ) -> Iterator[tuple[pa.RecordBatch, npt.NDArray[np.int64]]]:
        """Yield batches with any of the rows (counted through these groups), and the rows' positions in the batch."""
        start = 0
        for batch in self._decoded(groups, columns, batch_rows):
            here = rows[slice(*np.searchsorted(rows, (start, start + batch.num_rows)))] - start
            start += batch.num_rows
            if len(here):
                yield batch, here

    def _decoded(self, groups: list[int], columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        if not groups:
            return
        batches = self._parquet.iter_batches(batch_rows, row_groups=groups, columns=list(columns), use_threads=False)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                message = f"{self._path} can't be decoded: {error}"
                raise CorruptFileError(message) from error
            if batch is None:
                return
            yield batch

    def _found_rows(self, groups: list[int], row_test: RowTest) -> npt.NDArray[np.int64]:
        """Decode only the tested columns, of all groups at once: a lookup has no match in most of them.

        Returns the matching rows, counted through these groups only.
        """
        found = [np.zeros(0, dtype=np.int64)]
        start = 0
        for batch in self._decoded(groups, row_test.columns, _TESTED_ROWS):
            found.append(row_test.matching(batch) + start)
            start += batch.num_rows
        return np.concatenate(found)

    def _groups_of(
        self, groups: Sequence[int], found: npt.NDArray[np.int64]
    ) -> tuple[list[int], npt.NDArray[np.int64]]:
        """Return those of the groups that have matching rows, and these rows counted through them only."""
        rows = np.array([self._parquet.metadata.row_group(group).num_rows for group in groups], dtype=np.int64)
        ends = np.cumsum(rows)
        group_of_row = np.searchsorted(ends, found, side="right")
        is_wanted = np.zeros(len(groups), dtype=np.bool_)
        is_wanted[group_of_row] = True
        skipped = np.cumsum(np.where(is_wanted, 0, rows))
        return [group for group, wanted in zip(groups, is_wanted, strict=True) if wanted], found - skipped[group_of_row]

    def _matching_row_groups(self, predicate: Predicate | None) -> list[int]:
        metadata = self._parquet.metadata
        groups = range(metadata.num_row_groups)
        if predicate is None:
            return list(groups)
        columns = {name: index for name, index in column_indices(metadata).items() if name in predicate.columns}
        return [
            group for group in groups if predicate.may_match(row_group_statistics(metadata.row_group(group), columns))
        ]
