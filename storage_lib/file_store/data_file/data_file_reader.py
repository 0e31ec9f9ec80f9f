"""Reads the wanted columns of a data file, with the table's names and types, whatever schema wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.errors import CorruptFileError, InvalidInputError, NotFoundError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.deletion_vector import read_deletion_vector
from storage_lib.file_store.data_file.file_checksum import checked, checksum_in
from storage_lib.file_store.data_file.file_layout import FileLayout
from storage_lib.file_store.data_file.key_cache import KeyCache
from storage_lib.file_store.data_file.key_range import KeyRange
from storage_lib.file_store.data_file.row_group_keys import RowGroupKeys, groups_in_range, row_group_keys
from storage_lib.file_store.data_file.stored_columns import ColumnResolution, StoredColumn, StoredColumns
from storage_lib.format.file_format import FileFormat, FormatReader, RowGroupReader, RowTest
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.encoding.char_padding import without_padding
from storage_lib.schema.evolution.evolved_arrays import evolved
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.comparisons import Equal, In
from storage_lib.schema.filter.predicate import Predicate
from storage_lib.schema.options.external_paths import io_path
from storage_lib.schema.types.data_types import DataType

_LIMIT = 1 << 63
_PADS = ".orc"
"""Extension of files whose CHAR columns are padded with spaces."""
_HAS_PAGE_CHECKSUMS = "parquet"
"""Prefix of the extension of files whose pages have checksums, so that some columns can be read alone.

Other formats have no checksums of their own, so all bytes are checked first.
"""
_SEARCHABLE = ".parquet"
"""Extension of files whose reader is a ``RowGroupReader``."""


_READ_AT_ROWS = 131_072


class _Once:
    """File that is opened on first use."""

    def __init__(self, open_file: Callable[[], FormatReader]) -> None:
        self._open_file = open_file
        self._opened: FormatReader | None = None

    def get(self) -> FormatReader:
        if self._opened is None:
            self._opened = self._open_file()
        return self._opened


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Consecutive row groups of a file, and the position of their first row in it."""

    groups: range
    start: int


class DataFileReader:
    """Reads the data files of one bucket; stateless, so threads may share it."""

    def __init__(
        self,
        *,
        layout: FileLayout,
        schemas: SchemaVersions,
        columns: ColumnResolution,
        formats: Sequence[FileFormat],
        environment: Environment,
        paths: TablePaths,
        partition_path: str,
        bucket: int,
        key_cache: KeyCache | None = None,
    ) -> None:
        """``key_cache`` keeps the keys that lookups have read; without one each lookup reads them."""
        self._key_cache = key_cache
        self._layout = layout
        self._schemas = schemas
        self._columns = columns
        self._formats: Mapping[str, FileFormat] = {format_.extension: format_ for format_ in formats}
        self._environment = environment
        self._paths = paths
        self._partition_path = partition_path
        self._bucket = bucket

    def read(
        self,
        file: DataFileMeta,
        columns: Sequence[str],
        *,
        predicate: Predicate | None = None,
        key_range: KeyRange | None = None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield non-empty batches of at most ``batch_rows`` rows in file order, without rows marked as deleted.

        ``columns`` may name any field of the layout; a column that the file lacks is null. Row groups without a match
        of ``predicate`` or without a key in ``key_range`` are skipped; other rows that don't match may be. Raises
        ``NotFoundError`` if the file is missing, ``CorruptFileError`` if it differs from ``file``, and
        ``InvalidInputError`` for values of a newer schema that the table's types can't store, and for unsupported
        features of other writers.
        """
        path = self._path(file)
        _refuse_some_columns(file, path)
        stored = self._columns.of(file.schema_id, tuple(columns))
        with ExitStack() as closing:
            # Open the file lazily: cached keys can make reading it unnecessary.
            is_whole = predicate is None and key_range is None and stored.are_whole
            opened = _Once(lambda: self._opened(path, file, closing, is_whole=is_whole))
            for batch in self._stored_batches(file, path, opened, stored, predicate, key_range, batch_rows):
                if batch.num_rows:
                    yield self._evolved(batch, stored, file, path)

    def read_placed(
        self, file: DataFileMeta, columns: Sequence[str], *, key_range: KeyRange | None = None, batch_rows: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield non-empty batches as ``read`` does, each with the position of its first row in the file.

        REQUIRES a column: a batch without columns does not tell its number of rows. Rows marked as deleted are among
        them. Raises as ``read``.
        """
        path = self._path(file)
        _refuse_some_columns(file, path)
        stored = self._columns.of(file.schema_id, tuple(columns))
        with ExitStack() as closing:
            is_whole = key_range is None and stored.are_whole
            reader = self._opened(path, file, closing, is_whole=is_whole)
            part = None if key_range is None else self._part_in_range(reader, file, path, key_range)
            asked = self._present(stored, reader)
            start = 0 if part is None else part.start
            for batch in _batches(reader, part, asked, predicate=None, row_test=None, batch_rows=batch_rows):
                if batch.num_rows:
                    yield start, self._evolved(batch, stored, file, path)
                    start += batch.num_rows

    def _opened(self, path: str, file: DataFileMeta, closing: ExitStack, *, is_whole: bool) -> FormatReader:
        """Open the file and check its row count. ``is_whole``: every column of every row is going to be read."""
        try:
            files = self._environment.file_io if file.external_path is None else self._environment.stores
            source = closing.enter_context(files.open_input(path))
        except NotFoundError as error:
            message = (
                f"Data file {path} does not exist. If its snapshot was expired meanwhile, plan the read again from a "
                "newer snapshot."
            )
            raise NotFoundError(message) from error
        format_ = self._format_of(path)
        expected = checksum_in(file.embedded_file_index)
        if expected is not None and (is_whole or not path.rpartition(".")[2].startswith(_HAS_PAGE_CHECKSUMS)):
            # Check before decoding: decoders do not tolerate arbitrary damage.
            source = checked(source, expected, path)
        opened = format_.reader(source, path)
        if opened.row_count != file.row_count:
            message = f"{path} holds {opened.row_count} rows, but its manifest entry says {file.row_count}."
            raise CorruptFileError(message)
        return opened

    def _stored_batches(
        self,
        file: DataFileMeta,
        path: str,
        opened: _Once,
        stored: StoredColumns,
        predicate: Predicate | None,
        key_range: KeyRange | None,
        batch_rows: int,
    ) -> Iterator[pa.RecordBatch]:
        positions = self._positions(file, path, opened, predicate)
        if positions is not None and not len(positions):
            return
        reader = opened.get()
        there = set(reader.column_names)
        asked = self._present(stored, reader)
        if positions is not None:
            yield from cast("RowGroupReader", reader).rows_at(asked, positions, batch_rows=batch_rows)
            return
        pushed = predicate if self._has_pushable(predicate, file.schema_id) else None
        row_test = self._row_test(predicate, there, file, path)
        part = None if key_range is None else self._part_in_range(reader, file, path, key_range)
        yield from self._live_batches(reader, asked, pushed, row_test, batch_rows, file, part)

    def _present(self, stored: StoredColumns, opened: FormatReader) -> Sequence[str]:
        """Return the columns to read. If the file has none of them, any column gives the number of null rows."""
        there = set(opened.column_names)
        return [
            each.name for each in stored.columns if each.name is not None and each.name in there
        ] or opened.column_names[:1]

    def _evolved(self, batch: pa.RecordBatch, stored: StoredColumns, file: DataFileMeta, path: str) -> pa.RecordBatch:
        arrays = [self._column(batch, each, file, path) for each in stored.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=stored.schema)

    def row_group_keys(self, file: DataFileMeta) -> Sequence[RowGroupKeys] | None:
        """Return the bounds of the keys in each row group, from the file's footer; None if they are not known.

        They are not for formats without such statistics, files that are not sorted by key, and keys of another type
        than now. Raises as ``read``.
        """
        path = self._path(file)
        if not path.endswith(_SEARCHABLE) or not self._key_columns(file.schema_id):
            return None
        with ExitStack() as closing:
            return self._row_groups(self._opened(path, file, closing, is_whole=False), file, path)

    def _row_groups(self, opened: FormatReader, file: DataFileMeta, path: str) -> Sequence[RowGroupKeys] | None:
        columns = self._key_columns(file.schema_id)
        if not columns or not path.endswith(_SEARCHABLE):
            return None
        groups = cast("RowGroupReader", opened).group_statistics([name for name, _ in columns])
        return [row_group_keys(statistics, columns, row_count) for row_count, statistics in groups]

    def _key_columns(self, schema_id: int) -> Sequence[tuple[str, DataType]]:
        """Return the names in the file, and types, of the key's first columns that are stored as they are now."""
        found: list[tuple[str, DataType]] = []
        for each in self._columns.of(schema_id, self._layout.sorted_by).columns:
            if each.name is None or each.stored_type != each.wanted_type:
                break
            found.append((each.name, each.wanted_type))
        return found

    def _part_in_range(self, opened: FormatReader, file: DataFileMeta, path: str, key_range: KeyRange) -> _Part | None:
        """Return the row groups that may have keys in the range; None: the whole file."""
        groups = self._row_groups(opened, file, path)
        if groups is None:
            return None
        wanted = groups_in_range(groups, key_range)
        return _Part(groups=wanted, start=sum(group.row_count for group in groups[: wanted.start]))

    def _positions(
        self, file: DataFileMeta, path: str, opened: _Once, predicate: Predicate | None
    ) -> npt.NDArray[np.int64] | None:
        """Return the positions of the keys in ``predicate``; None if the file cannot be searched for them."""
        if self._key_cache is None or predicate is None or not path.endswith(_SEARCHABLE):
            return None
        searched = self._searched_keys(predicate, file.schema_id)
        if searched is None:
            return None
        searched_values, column = searched
        places = self._places(path, opened, column, searched_values)
        if places is None or file.deletion_file is None or not len(places[0]):
            return None if places is None else places[0]
        return places[0][~np.isin(places[0], self.deleted_rows(file))]

    def _places(
        self, path: str, opened: _Once, column: str, searched: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        assert self._key_cache is not None  # noqa: S101  checked by the callers
        return self._key_cache.places(
            path,
            searched,
            read_bounds=lambda: cast("RowGroupReader", opened.get()).bounds(column),
            read_groups=lambda groups: cast("RowGroupReader", opened.get()).values(column, groups),
        )

    def key_places(
        self, file: DataFileMeta, searched: npt.NDArray[np.int64] | None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
        """Return positions and keys of the rows with one of these integer keys (ascending; None: all), ascending.

        The file is only opened for keys that are not cached. None if it can't be searched so, because of its format
        or another type of key. Rows marked as deleted are among them. Raises as ``read``.
        """
        path = self._path(file)
        column = self._searchable_column(file.schema_id)
        if self._key_cache is None or column is None or not path.endswith(_SEARCHABLE):
            return None
        with ExitStack() as closing:
            opened = _Once(lambda: self._opened(path, file, closing, is_whole=False))
            return self._places(path, opened, column, searched)

    def read_at(
        self, file: DataFileMeta, columns: Sequence[str], positions: npt.NDArray[np.int64]
    ) -> list[pa.RecordBatch]:
        """Return the rows at these ascending positions. REQUIRES a Parquet file and a column. Raises as ``read``."""
        path = self._path(file)
        stored = self._columns.of(file.schema_id, tuple(columns))
        with ExitStack() as closing:
            reader = self._opened(path, file, closing, is_whole=False)
            asked = self._present(stored, reader)
            batches = cast("RowGroupReader", reader).rows_at(asked, positions, batch_rows=_READ_AT_ROWS)
            return [self._evolved(batch, stored, file, path) for batch in batches]

    def _live_batches(
        self,
        opened: FormatReader,
        columns: Sequence[str],
        predicate: Predicate | None,
        row_test: RowTest | None,
        batch_rows: int,
        file: DataFileMeta,
        part: _Part | None,
    ) -> Iterator[pa.RecordBatch]:
        if file.deletion_file is None:
            yield from _batches(opened, part, columns, predicate=predicate, row_test=row_test, batch_rows=batch_rows)
            return
        stands = np.ones(file.row_count, dtype=np.bool_)
        stands[self.deleted_rows(file)] = False
        # Positions count all rows of the file, so no row group after the first one read may be skipped.
        start = 0 if part is None else part.start
        for batch in _batches(opened, part, columns, predicate=None, row_test=None, batch_rows=batch_rows):
            mask = stands[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch if mask.all() else batch.filter(pa.array(mask))

    def deleted_rows(self, file: DataFileMeta) -> npt.NDArray[np.int64]:
        """Return the positions of the file's rows marked as deleted, ascending."""
        deletion_file = file.deletion_file
        if deletion_file is None:
            return np.zeros(0, dtype=np.int64)
        named = deletion_file.external_path
        path = self._paths.index_path(deletion_file.file_name) if named is None else io_path(named)
        files = self._environment.file_io if named is None else self._environment.stores
        with files.open_input(path) as source:
            positions = read_deletion_vector(source, deletion_file.offset, path)
        noted = deletion_file.row_count
        if (len(positions) and positions[-1] >= file.row_count) or (noted is not None and noted != len(positions)):
            message = f"{path} marks {len(positions)} rows of {file.file_name}, which do not fit its {file.row_count}."
            raise CorruptFileError(message)
        return positions

    def _row_test(self, predicate: Predicate | None, there: set[str], file: DataFileMeta, path: str) -> RowTest | None:
        """Return a test on the condition's columns: if few rows match, most of the others need not be decoded."""
        if predicate is None or not predicate.names_values:
            return None
        stored = self._columns.of(file.schema_id, tuple(sorted(predicate.columns)))
        names = tuple(each.name for each in stored.columns if each.name in there)
        if len(names) < len(stored.columns):
            return None

        def matching(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
            arrays = [self._column(batch, each, file, path) for each in stored.columns]
            mask = predicate.mask(pa.RecordBatch.from_arrays(arrays, schema=stored.schema))
            return np.flatnonzero(mask.to_numpy(zero_copy_only=False))

        return RowTest(columns=names, matching=matching)

    def _searched_keys(self, predicate: Predicate, schema_id: int) -> tuple[npt.NDArray[np.int64], str] | None:
        """Return the integers in the predicate, ascending, and the file's column that is sorted by them.

        None for any other condition or key type; each row is tested then.
        """
        if self._layout.sorted_by != tuple(predicate.columns) or not isinstance(predicate, Equal | In):
            return None
        column = self._searchable_column(schema_id)
        return None if column is None else (_integers_of(predicate), column)

    def _searchable_column(self, schema_id: int) -> str | None:
        """Return the file's column that is its key; None for keys of several columns, or other than integers."""
        if len(self._layout.sorted_by) != 1 or not pa.types.is_integer(
            self._layout.field(self._layout.sorted_by[0]).type
        ):
            return None
        (stored,) = self._columns.of(schema_id, self._layout.sorted_by).columns
        return stored.name if stored.stored_type.root is stored.wanted_type.root else None

    def _has_pushable(self, predicate: Predicate | None, schema_id: int) -> bool:
        """Return whether a file's own statistics apply: its columns must have the same names and types as now."""
        return predicate is not None and self._schemas.unchanged_in(schema_id, predicate.columns)

    def _column(self, batch: pa.RecordBatch, stored: StoredColumn, file: DataFileMeta, path: str) -> pa.Array:
        index = -1 if stored.name is None else batch.schema.get_field_index(stored.name)
        if index < 0:
            return pa.nulls(batch.num_rows, stored.wanted.type)
        column = batch.column(index)
        is_padded = path.endswith(_PADS)
        if stored.stands_as_it_is and not is_padded and column.type == stored.wanted.type:
            return column
        try:
            if is_padded:
                column = without_padding(column, stored.stored_type)
            return evolved(column, stored.stored_type, stored.wanted_type)
        except InvalidInputError as error:
            message = f"Column {stored.wanted.name!r} of {path}: {error}"
            raise InvalidInputError(message) from error
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
            return io_path(file.external_path)
        return self._paths.data_file_path(self._partition_path, self._bucket, file.file_name)

    def _format_of(self, path: str) -> FileFormat:
        extension = path.rpartition(".")[2]
        try:
            return self._formats[extension]
        except KeyError as error:
            message = f"{path} is of format {extension!r}; this table reads {sorted(self._formats)}."
            raise InvalidInputError(message) from error


def _batches(
    opened: FormatReader,
    part: _Part | None,
    columns: Sequence[str],
    *,
    predicate: Predicate | None,
    row_test: RowTest | None,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    if part is None:
        return opened.batches(columns, predicate=predicate, row_test=row_test, batch_rows=batch_rows)
    return cast("RowGroupReader", opened).batches(
        columns, predicate=predicate, row_test=row_test, batch_rows=batch_rows, groups=part.groups
    )


def _refuse_some_columns(file: DataFileMeta, path: str) -> None:
    if file.write_cols is not None:
        message = (
            f"Data file {path} holds some columns of its rows only ({', '.join(file.write_cols)}); the others are in "
            "files of their own, which this library does not join. Read the table with the engine that wrote it, or "
            "rewrite it there without data-evolution.enabled."
        )
        raise InvalidInputError(message)


@lru_cache(maxsize=16)
def _integers_of(predicate: Equal | In) -> npt.NDArray[np.int64]:
    named = (predicate.value,) if isinstance(predicate, Equal) else predicate.values
    return np.array(sorted({each for each in named if isinstance(each, int) and -_LIMIT <= each < _LIMIT}), np.int64)
