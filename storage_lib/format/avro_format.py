"""Avro files of the file store: an object container file of zstandard blocks, one record per row (docs/format.md).

Rows are written column by column (``avro_encoding``), but the end of a record is only known after decoding it:
fastavro, which is compiled, decodes them one by one, so reading is many times slower than with columnar formats. This
format is for tables that other engines write in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.format.avro_container import UNREADABLE, BlockReader, BlockWriter
from storage_lib.format.avro_encoding import encoded_rows
from storage_lib.format.avro_types import avro_schema_of, restored, stored, stored_type
from storage_lib.format.batch_statistics import BatchStatistics
from storage_lib.format.file_format import RowTest
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.types.nested_types import has_nanoseconds
from storage_lib.schema.types.variant import has_variants

GROUP_ROWS = 16_384
BLOCK_ROWS = 4_096
CODECS = {"zstd": "zstandard", "deflate": "deflate", "none": "null"}
_UNREADABLE = (*UNREADABLE, pa.ArrowException, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFormat:
    """Settings for writing Avro files; reading needs none of them."""

    compression: str = "zstd"
    extension: str = field(default="avro", init=False)

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` for nanoseconds and variants, for which Avro has no type."""
        for column in schema:
            if has_nanoseconds(column.type):
                message = f"Column {column.name!r} has a timestamp finer than a microsecond; declare it TIMESTAMP(6)."
                raise InvalidInputError(message)
            if has_variants(column.type):
                message = (
                    f"Column {column.name!r} is a VARIANT, which only Parquet files hold; use file.format=parquet."
                )
                raise InvalidInputError(message)

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> AvroFileWriter:  # noqa: ARG002
        """Start a file."""
        record = avro_schema_of(schema)
        blocks = BlockWriter(output, json.dumps(record), CODECS[self.compression])
        return AvroFileWriter(output, schema, record, blocks)

    def reader(self, source: pa.NativeFile, path: str) -> AvroFileReader:
        """Open a file and read its header."""
        try:
            return AvroFileReader(BlockReader(source, path), path)
        except _UNREADABLE as error:
            raise _corrupt(path, error) from error


class AvroFileWriter:
    """Avro file being written to the output."""

    row_group_rows = GROUP_ROWS

    def __init__(
        self, output: pa.NativeFile, schema: pa.Schema, record: Mapping[str, Any], blocks: BlockWriter
    ) -> None:
        self._output = output
        self._blocks = blocks
        self._record = record
        self._statistics = BatchStatistics(schema)

    @property
    def size_bytes(self) -> int:
        """Number of bytes written so far."""
        return int(self._output.tell())

    def write(self, rows: pa.Table) -> None:
        """Append rows, some thousand per block."""
        self._statistics.add(rows)
        for batch in rows.to_batches(max_chunksize=BLOCK_ROWS):
            arrays = [stored(column) for column in batch.columns]
            self._blocks.write(batch.num_rows, encoded_rows(arrays, self._record))

    def close(self) -> Mapping[str, ColumnStats]:
        """Flush the output; an Avro file has no footer."""
        self._output.flush()
        return self._statistics.result()

    def abandon(self) -> None:
        """Do nothing: no resources are held."""


class AvroFileReader:
    """Avro file whose header has been read."""

    def __init__(self, blocks: BlockReader, path: str) -> None:
        self._blocks = blocks
        self._path = path
        self._fields: dict[str, Any] = {each["name"]: each["type"] for each in blocks.schema["fields"]}
        self._row_count: int | None = None

    @property
    def row_count(self) -> int:
        """Number of rows in the file, the sum over its blocks: only block headers are read."""
        if self._row_count is None:
            try:
                self._row_count = sum(self._blocks.counts())
            except _UNREADABLE as error:
                raise _corrupt(self._path, error) from error
        return self._row_count

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the columns in the file."""
        return list(self._fields)

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,  # noqa: ARG002  blocks have no statistics
        row_test: RowTest | None = None,  # noqa: ARG002  as above
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of every block; none is skipped."""
        wanted = [name for name in self._fields if name in columns]
        row_type = pa.struct([(name, stored_type(self._fields[name])) for name in wanted])
        try:
            for records in self._blocks.blocks(wanted):
                rows = pa.array(records, row_type)
                arrays = [restored(rows.field(index), self._fields[name]) for index, name in enumerate(wanted)]
                batch = pa.RecordBatch.from_arrays(arrays, names=wanted)
                for start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(start, batch_rows)
        except _UNREADABLE as error:
            raise _corrupt(self._path, error) from error


def _corrupt(path: str, error: Exception) -> CorruptFileError:
    if isinstance(error, CorruptFileError):
        return error
    return CorruptFileError(f"{path} is not a readable Avro file ({error!r}): it was cut short or changed")
