"""Writes batches in file order to data files of about the target size, with exact metadata (docs/format.md)."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.data_file.file_checksum import ChecksumOutput, encode_checksum
from storage_lib.file_store.data_file.file_layout import FileLayout, FileTally
from storage_lib.format.file_format import FileFormat, FormatWriter
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.filter.column_stats import encode_stats
from storage_lib.schema.options.external_paths import ExternalPaths, io_path


class DataFileWriter:
    """Writes the data files of one bucket. Not thread-safe.

    Files are complete when ``write`` returns and durable once the paths of ``take_unsynced`` have been synced.
    """

    def __init__(
        self,
        *,
        layout: FileLayout,
        file_format: FileFormat,
        environment: Environment,
        paths: TablePaths,
        partition_path: str,
        bucket: int,
        target_file_size: int,
        formats_by_level: Mapping[int, FileFormat] | None = None,
        external: ExternalPaths | None = None,
        delete: Callable[[str], None] | None = None,
    ) -> None:
        """``formats_by_level`` has the levels whose files are not of ``file_format``.

        ``delete`` deletes a file by path, also in the external directories of ``external``.
        """
        self._external = external or ExternalPaths()
        self._delete = delete or partial(environment.file_io.delete, below=paths.root)
        self._formats_by_level = formats_by_level or {}
        self.layout = layout
        self.target_file_size = target_file_size
        self._format = file_format
        self._environment = environment
        self._paths = paths
        self._partition_path = partition_path
        self._bucket = bucket
        self._writer_uuid = environment.new_name()
        # Writers of only one file each should not all start with the same directory.
        self._first_index = zlib.crc32(self._writer_uuid.encode())
        self._file_count = 0
        self._unsynced: list[str] = []

    def write(
        self, batches: Iterable[pa.RecordBatch], *, level: int, file_source: FileSource = FileSource.APPEND
    ) -> list[DataFileMeta]:
        """Write batches of the layout, in its order; without rows, no file.

        A file ends with the row group that exceeds the target size. After an error, no file is left.
        """
        series = FileSeries(self._opener(level, TablePaths.new_data_file_name), self, level, file_source)
        try:
            for batch in batches:
                series.add(batch)
            return series.close()
        except BaseException:
            series.abandon()
            raise

    def changelog(self, *, level: int, file_source: FileSource = FileSource.APPEND) -> FileSeries:
        """Return a series of changelog files of this bucket."""
        return FileSeries(self._opener(level, TablePaths.new_changelog_file_name), self, level, file_source)

    def write_index(self, data: bytes) -> str:
        """Write a new index file, durable when this returns; return its name."""
        name = self._paths.new_index_name(self._environment.new_name(), 0)
        self._environment.file_io.write_bytes(self._paths.index_path(name), data)
        return name

    def take_unsynced(self) -> list[str]:
        """Return the paths written since the last call, for ``FileIO.sync``, preferably all buckets' at once."""
        unsynced, self._unsynced = self._unsynced, []
        return unsynced

    def delete(self, files: Sequence[DataFileMeta]) -> None:
        """Delete files that no snapshot will ever name."""
        for file in files:
            self.delete_path(self._path(file.file_name, file.external_path))

    def delete_path(self, path: str) -> None:
        """Delete one incomplete file."""
        self._unsynced = [unsynced for unsynced in self._unsynced if unsynced != path]
        self._delete(path)

    def _opener(self, level: int, new_name: Callable[[str, int, str], str]) -> Callable[[pa.RecordBatch], _OpenFile]:
        file_format = self._formats_by_level.get(level, self._format)

        def opened(sample: pa.RecordBatch) -> _OpenFile:
            name = new_name(self._writer_uuid, self._file_count, file_format.extension)
            directory = self._paths.relative_bucket_directory(self._partition_path, self._bucket)
            url = self._external.url_of(directory, name, self._first_index + self._file_count)
            self._file_count += 1
            path = self._path(name, url)
            rows = self.layout.to_file(sample)
            summed = ChecksumOutput(self._environment.file_io.open_output(path))
            self._unsynced.append(path)
            output = pa.PythonFile(summed, mode="w")
            try:
                writer = file_format.writer(output, self.layout.file_arrow_schema, rows)
            except BaseException:
                output.close()
                self.delete_path(path)
                raise
            return _OpenFile(self.layout, self.layout.new_tally(), writer, output, summed, path, name, url)

        return opened

    def _path(self, name: str, external_path: str | None) -> str:
        if external_path is not None:
            return io_path(external_path)
        return self._paths.data_file_path(self._partition_path, self._bucket, name)

    def now_millis(self) -> int:
        """Return the creation time of a file."""
        return self._environment.clock.now_millis()


class FileSeries:
    """Writes rows in file order, batch by batch, to files of about the target size; without rows, no file.

    A file ends with the row group that exceeds the target size. If it is not closed, call ``abandon``.
    """

    def __init__(
        self,
        open_file: Callable[[pa.RecordBatch], _OpenFile],
        owner: DataFileWriter,
        level: int,
        file_source: FileSource,
    ) -> None:
        self._open_file = open_file
        self._owner = owner
        self._level = level
        self._file_source = file_source
        self._file: _OpenFile | None = None
        self._pending: deque[pa.RecordBatch] = deque()
        self._pending_rows = 0
        self._written: list[DataFileMeta] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if not rows.num_rows:
            return
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        while self._pending_rows and self._pending_rows >= self._opened().row_group_rows:
            self._write_group()

    def close(self) -> list[DataFileMeta]:
        """Return all files, complete; durable once the writer's unsynced paths are synced."""
        while self._pending_rows:
            self._write_group()
        self._close_file()
        return self._written

    def abandon(self) -> None:
        """Delete all written files."""
        if self._file is not None:
            self._file.abandon()
            self._owner.delete_path(self._file.path)
            self._file = None
        self._owner.delete(self._written)
        self._written = []
        self._pending.clear()
        self._pending_rows = 0

    def _opened(self) -> _OpenFile:
        if self._file is None:
            self._file = self._open_file(self._pending[0])
        return self._file

    def _write_group(self) -> None:
        file = self._opened()
        group: list[pa.RecordBatch] = []
        missing = min(file.row_group_rows, self._pending_rows)
        self._pending_rows -= missing
        while missing:
            batch = self._pending.popleft()
            group.append(batch.slice(0, missing))
            if batch.num_rows > missing:
                self._pending.appendleft(batch.slice(missing))
            missing -= group[-1].num_rows
        file.write(group)
        if file.size_bytes >= self._owner.target_file_size:
            self._close_file()

    def _close_file(self) -> None:
        if self._file is not None:
            self._written.append(self._file.close(self._level, self._file_source, self._owner.now_millis()))
            self._file = None


class _OpenFile:
    """File being written, and the facts of its rows that its metadata will need."""

    def __init__(
        self,
        layout: FileLayout,
        tally: FileTally,
        writer: FormatWriter,
        output: pa.NativeFile,
        summed: ChecksumOutput,
        path: str,
        name: str,
        external_path: str | None,
    ) -> None:
        self.path = path
        self._layout = layout
        self._tally = tally
        self._writer = writer
        self._output = output
        self._summed = summed
        self._name = name
        self._external_path = external_path
        self._row_count = 0

    @property
    def row_group_rows(self) -> int:
        return self._writer.row_group_rows

    @property
    def size_bytes(self) -> int:
        return self._writer.size_bytes

    def write(self, group: Sequence[pa.RecordBatch]) -> None:
        self._writer.write(pa.Table.from_batches([self._layout.to_file(batch) for batch in group]))
        for batch in group:
            self._row_count += batch.num_rows
            self._tally.add(batch)

    def close(self, level: int, file_source: FileSource, now_millis: int) -> DataFileMeta:
        stats = self._writer.close()
        file_size = self._writer.size_bytes
        self._output.close()
        # Nested columns have no bounds, so the names of the columns with bounds are stored with them.
        fields = self._layout.schema.scalar_fields
        facts = self._tally.facts(stats)
        return DataFileMeta(
            file_name=self._name,
            file_size=file_size,
            row_count=self._row_count,
            min_key=facts.min_key,
            max_key=facts.max_key,
            key_stats=facts.key_stats,
            value_stats=encode_stats([stats[field.name] for field in fields], fields),
            min_sequence_number=facts.min_sequence_number,
            max_sequence_number=facts.max_sequence_number,
            schema_id=self._layout.schema.id,
            level=level,
            creation_time_ms=_local_wall_clock_millis(now_millis),
            delete_row_count=facts.delete_row_count,
            file_source=file_source,
            value_stats_cols=tuple(field.name for field in fields),
            embedded_file_index=encode_checksum(self._summed.checksum),
            external_path=self._external_path,
        )

    def abandon(self) -> None:
        self._writer.abandon()
        self._output.close()


def _local_wall_clock_millis(epoch_millis: int) -> int:
    """Return the local wall clock time as if it were UTC, which is how the format stores a creation time."""
    moment = datetime.fromtimestamp(epoch_millis / 1000, tz=UTC)
    offset = moment.astimezone().utcoffset() or timedelta()
    return epoch_millis + offset // timedelta(milliseconds=1)
