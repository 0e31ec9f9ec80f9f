"""ORC files of the file store: zstd, columns with their ids in the attribute ``paimon.id`` (docs/format.md).

Arrow's ORC has no time of day and reads timestamps as nanoseconds: the former is stored as milliseconds in an INT,
as Paimon does; the latter are limited to 1677-09-22 to 2262-04-10, and before 1970 to whole seconds. A whole stripe is
read at once, so stripes are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import orc

from storage_lib.errors import CorruptFileError, InvalidInputError
from storage_lib.format.batch_statistics import BatchStatistics
from storage_lib.format.file_format import RowTest
from storage_lib.schema.filter.column_stats import ColumnStats
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.types.nested_arrays import list_parts, map_parts, struct_child, with_nulls_below
from storage_lib.schema.types.nested_types import has_nanoseconds
from storage_lib.schema.types.variant import has_variants

STRIPE_BYTES = 8 * 1024 * 1024
GROUP_ROWS = 32_768
CODECS = {"zstd": "zstd", "zlib": "zlib", "snappy": "snappy", "lz4": "lz4", "none": "uncompressed"}
_FIELD_ID_KEY = b"PARQUET:field_id"
_ORC_ID_KEY = b"paimon.id"
_EARLIEST, _LATEST = datetime(1677, 9, 22), datetime(2262, 4, 11)  # noqa: DTZ001  compared with values of either kind
_ONE_SECOND = datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001  after the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcFormat:
    """Settings for writing ORC files; reading needs none of them."""

    compression: str = "zstd"
    extension: str = field(default="orc", init=False)

    def refuse_unsupported(self, schema: pa.Schema) -> None:
        """Raise ``InvalidInputError`` for nanoseconds, as the other formats do, and for variants."""
        for column in schema:
            if has_nanoseconds(column.type):
                message = f"Column {column.name!r} has a timestamp finer than a microsecond; declare it TIMESTAMP(6)."
                raise InvalidInputError(message)
            if has_variants(column.type):
                message = (
                    f"Column {column.name!r} is a VARIANT, which only Parquet files hold; use file.format=parquet."
                )
                raise InvalidInputError(message)

    def writer(self, output: pa.NativeFile, schema: pa.Schema, sample: pa.RecordBatch) -> OrcFileWriter:  # noqa: ARG002
        """Start a file."""
        codec = CODECS[self.compression]
        guarded = _GuardedOutput(output)
        writer = orc.ORCWriter(pa.PythonFile(guarded, "w"), compression=codec, stripe_size=STRIPE_BYTES)
        return OrcFileWriter(guarded, schema, writer)

    def reader(self, source: pa.NativeFile, path: str) -> OrcFileReader:
        """Open a file and read its footer."""
        try:
            return OrcFileReader(orc.ORCFile(source), path)
        except (pa.ArrowException, OSError) as error:
            message = f"{path} is not a readable ORC file: {error}"
            raise CorruptFileError(message) from error


class OrcFileWriter:
    """ORC file being written to the output."""

    row_group_rows = GROUP_ROWS

    def __init__(self, output: _GuardedOutput, schema: pa.Schema, writer: orc.ORCWriter) -> None:
        self._output = output
        self._writer = writer
        self._stored = pa.schema([_stored_field(each) for each in schema])
        self._statistics = BatchStatistics(schema)

    @property
    def size_bytes(self) -> int:
        """Size of the stripes written so far, in bytes."""
        return self._output.tell()

    def write(self, rows: pa.Table) -> None:
        """Append rows to the current stripe.

        Raises ``InvalidInputError`` for a timestamp that ORC's nanoseconds can't represent.
        """
        for name in rows.column_names:
            for chunk in rows.column(name).chunks:
                _check_timestamps(chunk, name)
        self._statistics.add(rows)
        # Arrow's ORC writer (seen in pyarrow 26) takes the nulls of a sliced struct from its beginning, and moves the
        # values of a nested struct if the outer one has nulls and the inner one does not.
        whole = rows.take(pa.array(np.arange(rows.num_rows))).combine_chunks().to_batches()[0]
        columns = [
            with_nulls_below(column if column.type == each.type else column.cast(each.type))
            for column, each in zip(whole.columns, self._stored, strict=True)
        ]
        self._writer.write(pa.Table.from_arrays(columns, schema=self._stored))
        self._output.raise_error()

    def close(self) -> Mapping[str, ColumnStats]:
        """Write the footer."""
        self._writer.close()
        self._output.raise_error()
        return self._statistics.result()

    def abandon(self) -> None:
        """Discard the output; pyarrow would otherwise write the footer later, when it deletes the writer."""
        self._output.discard()
        with suppress(Exception):
            self._writer.close()


class _GuardedOutput:
    """Hides output errors from Arrow's ORC writer, which aborts the process on them (seen in pyarrow 26)."""

    closed = False

    def __init__(self, output: pa.NativeFile) -> None:
        self._is_discarding = False
        self._output = output
        self._size = 0
        self._error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Write to the output; ignored after an error."""
        if self._error is None and not self._is_discarding:
            try:
                self._output.write(data)
            except BaseException as error:  # noqa: BLE001  raised by raise_error, in Python
                self._error = error
        self._size += len(data)
        return len(data)

    def discard(self) -> None:
        """Ignore all further writes."""
        self._is_discarding = True

    def raise_error(self) -> None:
        """Raise the first error so far, if any."""
        if self._error is not None:
            raise self._error

    def tell(self) -> int:
        """Return the number of bytes accepted so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: the caller owns the output."""

    def close(self) -> None:
        """Do nothing: the caller owns the output."""


class OrcFileReader:
    """ORC file whose footer has been read."""

    def __init__(self, file: orc.ORCFile, path: str) -> None:
        self._file = file
        self._path = path

    @property
    def row_count(self) -> int:
        """Number of rows in the file."""
        return int(self._file.nrows)

    @property
    def column_names(self) -> Sequence[str]:
        """Names of the columns in the file."""
        names: list[str] = self._file.schema.names
        return names

    def batches(
        self,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,  # noqa: ARG002  Arrow hands out no statistics of stripes
        row_test: RowTest | None = None,  # noqa: ARG002  whole stripes are read in any case
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of every stripe; none is skipped."""
        # Select by position: Arrow's reader interprets a name with a dot as a path.
        positions = sorted({self._file.schema.get_field_index(name) for name in columns})
        for stripe in range(self._file.nstripes):
            try:
                rows = self._file.read_stripe(stripe, columns=positions)
            except (pa.ArrowException, OSError) as error:
                message = f"{self._path} can't be decoded: {error}"
                raise CorruptFileError(message) from error
            for start in range(0, rows.num_rows, batch_rows):
                yield rows.slice(start, batch_rows)


def _stored_field(each: pa.Field) -> pa.Field:
    """Return the field as stored in ORC, with its id in ORC's attribute."""
    field_id = (each.metadata or {}).get(_FIELD_ID_KEY)
    stored = each.with_type(_stored_type(each.type))
    return stored.with_metadata(None if field_id is None else {_ORC_ID_KEY: field_id})


def _stored_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_time32(type_):
        return pa.int32()
    if pa.types.is_list(type_):
        return pa.list_(_stored_field(type_.value_field))
    if pa.types.is_map(type_):
        return pa.map_(_stored_field(type_.key_field), _stored_field(type_.item_field))
    if pa.types.is_struct(type_):
        return pa.struct([_stored_field(type_.field(index)) for index in range(type_.num_fields)])
    return type_


def _check_timestamps(array: pa.Array, name: str) -> None:
    type_ = array.type
    if pa.types.is_list(type_):
        _check_timestamps(list_parts(array).values, name)
    elif pa.types.is_map(type_):
        parts = map_parts(array)
        _check_timestamps(parts.keys, name)
        _check_timestamps(parts.values, name)
    elif pa.types.is_struct(type_):
        for index in range(type_.num_fields):
            _check_timestamps(struct_child(array, type_.field(index).name), name)
    elif pa.types.is_timestamp(type_) and not pc.all(_is_storable(array), min_count=0).as_py():
        message = (
            f"Column {name!r} has a timestamp outside {_EARLIEST.date()} to {_LATEST.date()}, or before 1970 with a "
            "fraction of a second, which not every reader of an ORC file would give back; use file.format=parquet, or "
            "filter such rows out."
        )
        raise InvalidInputError(message)


def _is_storable(array: pa.Array) -> pa.Array:
    """Return whether each timestamp can be read back from an ORC file.

    Arrow writes negative nanoseconds for a fraction before 1970 (seen in pyarrow 26), and can't read timestamps that
    exceed 64 bits of nanoseconds.
    """
    unit = array.type.unit
    low, high, second = (
        pa.scalar(each, pa.timestamp(unit)).cast(pa.int64()) for each in (_EARLIEST, _LATEST, _ONE_SECOND)
    )
    values = array.cast(pa.int64())
    is_whole = pc.equal(pc.multiply(pc.divide(values, second), second), values)
    is_in_range = pc.and_(pc.greater_equal(values, low), pc.less(values, high))
    return pc.and_(is_in_range, pc.or_(pc.greater_equal(values, 0), is_whole))
