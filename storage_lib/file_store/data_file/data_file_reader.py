"""A data file as batches of the wanted columns, with the table's names and types, whatever schema wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.deletion_vector import read_deletion_vector
from storage_lib.file_store.data_file.file_layout import FileLayout
from storage_lib.file_store.data_file.key_value import SEQUENCE_NUMBER, VALUE_COUNT, VALUE_KIND
from storage_lib.format.file_format import FileFormat, FormatReader, RowTest
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.comparisons import Equal, In
from storage_lib.schema.data_types import DataType, TypeRoot
from storage_lib.schema.evolved_arrays import evolved
from storage_lib.schema.predicate import Predicate
from storage_lib.schema.schema_versions import SchemaVersions

_SYSTEM_TYPES = {
    SEQUENCE_NUMBER: DataType(TypeRoot.BIGINT, nullable=False),
    VALUE_KIND: DataType(TypeRoot.TINYINT, nullable=False),
    VALUE_COUNT: DataType(TypeRoot.BIGINT, nullable=False),
}


_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class _StoredColumn:
    """A wanted column, and where it is in a file: ``name`` None where the file was written before it came."""

    wanted: pa.Field
    wanted_type: DataType
    name: str | None
    stored_type: DataType


class DataFileReader:
    """Reads the data files of one bucket; holds no state, so threads may share it."""

    def __init__(
        self,
        *,
        layout: FileLayout,
        schemas: SchemaVersions,
        formats: Sequence[FileFormat],
        file_io: FileIO,
        paths: TablePaths,
        partition_path: str,
        bucket: int,
    ) -> None:
        self._layout = layout
        self._schemas = schemas
        self._formats: Mapping[str, FileFormat] = {format_.extension: format_ for format_ in formats}
        self._file_io = file_io
        self._paths = paths
        self._partition_path = partition_path
        self._bucket = bucket

    def read(
        self, file: DataFileMeta, columns: Sequence[str], *, predicate: Predicate | None = None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Non-empty batches of at most ``batch_rows`` rows in file order, without those that are marked as deleted.

        ``columns`` may name any field of the layout; one that the file lacks is null.
        Row groups without a match of ``predicate`` are left out, other rows that don't match may be.

        Raises ``NotFoundError`` if the file is gone, ``CorruptFileError`` if it is not what ``file`` says, and
        ``InvalidInputError`` for values of a newer schema that the table's types can't hold.
        """
        path = self._path(file)
        try:
            source = self._file_io.open_input(path)
        except NotFoundError as error:
            message = (
                f"Data file {path} does not exist. If its snapshot was expired meanwhile, plan the read again from a "
                "newer snapshot."
            )
            raise NotFoundError(message) from error
        with source:
            opened = self._format_of(path).reader(source, path)
            if opened.row_count != file.row_count:
                message = f"{path} holds {opened.row_count} rows, but its manifest entry says {file.row_count}."
                raise CorruptFileError(message)
            stored = [self._stored(name, file.schema_id) for name in columns]
            schema = pa.schema([each.wanted for each in stored])
            there = set(opened.column_names)
            present = [each.name for each in stored if each.name is not None and each.name in there]
            # With none of the columns there, any one still tells how many rows are null.
            asked = present or opened.column_names[:1]
            pushed = predicate if self._has_pushable(predicate, file.schema_id) else None
            row_test = self._row_test(predicate, there, file, path)
            for batch in self._live_batches(opened, asked, pushed, row_test, batch_rows, file):
                if batch.num_rows:
                    arrays = [self._column(batch, each, file, path) for each in stored]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _live_batches(
        self,
        opened: FormatReader,
        columns: Sequence[str],
        predicate: Predicate | None,
        row_test: RowTest | None,
        batch_rows: int,
        file: DataFileMeta,
    ) -> Iterator[pa.RecordBatch]:
        if file.deletion_file is None:
            yield from opened.batches(columns, predicate=predicate, row_test=row_test, batch_rows=batch_rows)
            return
        stands = np.ones(file.row_count, dtype=np.bool_)
        stands[self.deleted_rows(file)] = False
        # Positions count all rows of the file, so no row group may be left out.
        start = 0
        for batch in opened.batches(columns, predicate=None, batch_rows=batch_rows):
            mask = stands[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch if mask.all() else batch.filter(pa.array(mask))

    def deleted_rows(self, file: DataFileMeta) -> npt.NDArray[np.int64]:
        """The positions, ascending, of the file's rows that are marked as deleted."""
        deletion_file = file.deletion_file
        if deletion_file is None:
            return np.zeros(0, dtype=np.int64)
        path = deletion_file.external_path or self._paths.index_path(deletion_file.file_name)
        with self._file_io.open_input(path) as source:
            positions = read_deletion_vector(source, deletion_file.offset, path)
        noted = deletion_file.row_count
        if (len(positions) and positions[-1] >= file.row_count) or (noted is not None and noted != len(positions)):
            message = f"{path} marks {len(positions)} rows of {file.file_name}, which do not fit its {file.row_count}."
            raise CorruptFileError(message)
        return positions

    def _stored(self, name: str, schema_id: int) -> _StoredColumn:
        wanted = self._layout.field(name)
        system = _SYSTEM_TYPES.get(name)
        if system is not None:
            return _StoredColumn(wanted=wanted, wanted_type=system, name=name, stored_type=system)
        wanted_type = self._schemas.current.field(name).type
        was = self._schemas.field_in(schema_id, name)
        return _StoredColumn(
            wanted=wanted,
            wanted_type=wanted_type,
            name=None if was is None else was.name,
            stored_type=wanted_type if was is None else was.type,
        )

    def _row_test(self, predicate: Predicate | None, there: set[str], file: DataFileMeta, path: str) -> RowTest | None:
        """Where few rows can be expected to match, a look at the columns of the condition saves decoding the others."""
        if predicate is None or not predicate.names_values:
            return None
        stored = [self._stored(name, file.schema_id) for name in sorted(predicate.columns)]
        names = tuple(each.name for each in stored if each.name in there)
        if len(names) < len(stored):
            return None
        schema = pa.schema([each.wanted for each in stored])
        searched = self._searched_keys(predicate)

        def matching(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
            arrays = [self._column(batch, each, file, path) for each in stored]
            if searched is not None:
                return _places(searched, arrays[0].to_numpy())
            mask = predicate.mask(pa.RecordBatch.from_arrays(arrays, schema=schema))
            return np.flatnonzero(mask.to_numpy(zero_copy_only=False))

        return RowTest(columns=names, matching=matching)

    def _searched_keys(self, predicate: Predicate) -> npt.NDArray[np.int64] | None:
        """The integers that the predicate names, ascending, if files are sorted by that one column: they can be
        searched for. Any other condition, or key, takes a look at each row.
        """
        if self._layout.sorted_by != tuple(predicate.columns) or not isinstance(predicate, Equal | In):
            return None
        if not pa.types.is_integer(self._layout.field(predicate.column).type):
            return None
        return _integers_of(predicate)

    def _has_pushable(self, predicate: Predicate | None, schema_id: int) -> bool:
        """A file's own statistics speak of its own columns: of no use where these went by other names or types."""
        return predicate is not None and self._schemas.unchanged_in(schema_id, predicate.columns)

    def _column(self, batch: pa.RecordBatch, stored: _StoredColumn, file: DataFileMeta, path: str) -> pa.Array:
        index = -1 if stored.name is None else batch.schema.get_field_index(stored.name)
        if index < 0:
            return pa.nulls(batch.num_rows, stored.wanted.type)
        column = batch.column(index)
        try:
            return evolved(column, stored.stored_type, stored.wanted_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            name, wanted = stored.wanted.name, stored.wanted_type
            if file.schema_id > self._schemas.current.id:
                message = (
                    f"Column {name!r} of {path} was written as {stored.stored_type} under the newer schema "
                    f"{file.schema_id} and does not fit {wanted} ({error}); load the table again to read it."
                )
                raise InvalidInputError(message) from error
            message = f"Column {name!r} of {path} is {column.type}, which can't be read as {wanted}: {error}"
            raise CorruptFileError(message) from error

    def _path(self, file: DataFileMeta) -> str:
        if file.external_path is not None:
            return file.external_path
        return self._paths.data_file_path(self._partition_path, self._bucket, file.file_name)

    def _format_of(self, path: str) -> FileFormat:
        extension = path.rpartition(".")[2]
        try:
            return self._formats[extension]
        except KeyError as error:
            message = f"{path} is of format {extension!r}; this table reads {sorted(self._formats)}."
            raise InvalidInputError(message) from error


@lru_cache(maxsize=16)
def _integers_of(predicate: Equal | In) -> npt.NDArray[np.int64]:
    named = (predicate.value,) if isinstance(predicate, Equal) else predicate.values
    return np.array(sorted({each for each in named if isinstance(each, int) and -_LIMIT <= each < _LIMIT}), np.int64)


def _places(searched: npt.NDArray[np.int64], values: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Where in ``values`` those searched for are, both being sorted."""
    first, end = np.searchsorted(values, searched), np.searchsorted(values, searched, side="right")
    counts = end - first
    return np.repeat(end - np.cumsum(counts), counts) + np.arange(counts.sum())
