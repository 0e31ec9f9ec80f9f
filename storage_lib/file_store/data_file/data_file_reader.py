"""A data file as batches of the wanted columns, with the table's types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.format.file_format import FileFormat
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.predicate import Predicate


class DataFileReader:
    """Reads the data files of one bucket; holds no state, so threads may share it."""

    def __init__(
        self,
        *,
        key_value: KeyValueSchema,
        formats: Sequence[FileFormat],
        file_io: FileIO,
        paths: TablePaths,
        partition_path: str,
        bucket: int,
    ) -> None:
        self._key_value = key_value
        self._formats: Mapping[str, FileFormat] = {format_.extension: format_ for format_ in formats}
        self._file_io = file_io
        self._paths = paths
        self._partition_path = partition_path
        self._bucket = bucket

    def read(
        self, file: DataFileMeta, columns: Sequence[str], *, predicate: Predicate | None = None, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Non-empty batches of at most ``batch_rows`` rows in file order.

        ``columns`` may name table columns and the two system columns of a KV batch; one that the file lacks is null.
        Row groups without a match of ``predicate`` are left out, rows are not filtered.

        Raises ``NotFoundError`` if the file is gone and ``CorruptFileError`` if it is not what ``file`` says.
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
            schema = self._key_value.projection(columns)
            present = [name for name in columns if name in opened.column_names]
            # With none of the columns there, any one still tells how many rows are null.
            asked = present or opened.column_names[:1]
            for batch in opened.batches(asked, predicate=predicate, batch_rows=batch_rows):
                if batch.num_rows:
                    yield _conformed(batch, schema, path)

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


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, path: str) -> pa.RecordBatch:
    columns = [_column(batch, field, path) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, path: str) -> pa.Array:
    index = batch.schema.get_field_index(field.name)
    if index < 0:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(index)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        message = f"Column {field.name!r} of {path} is {column.type}, which can't be read as {field.type}: {error}"
        raise CorruptFileError(message) from error
