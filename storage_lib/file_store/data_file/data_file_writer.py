"""Batches in file order -> data files of about the target size, with metadata exact in every field (docs/format.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from storage_lib.file_store.data_file.data_file_meta import DataFileMeta, FileSource
from storage_lib.file_store.data_file.file_layout import FileLayout, FileTally
from storage_lib.format.file_format import FileFormat, FormatWriter
from storage_lib.io.environment import Environment
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.column_stats import encode_stats
from storage_lib.schema.nested_types import is_nested


class DataFileWriter:
    """Writes the data files of one bucket. Not for several threads at once.

    Files are whole when ``write`` returns and durable once the paths of ``take_unsynced`` have been synced.
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
    ) -> None:
        """``formats_by_level`` has the levels whose files are not of ``file_format``."""
        self._formats_by_level = formats_by_level or {}
        for each in (file_format, *self._formats_by_level.values()):
            each.refuse_unsupported(layout.file_arrow_schema)
        self.layout = layout
        self.target_file_size = target_file_size
        self._format = file_format
        self._environment = environment
        self._paths = paths
        self._partition_path = partition_path
        self._bucket = bucket
        self._writer_uuid = environment.new_name()
        self._file_count = 0
        self._unsynced: list[str] = []

    def write(
        self, batches: Iterable[pa.RecordBatch], *, level: int, file_source: FileSource = FileSource.APPEND
    ) -> list[DataFileMeta]:
        """Write batches of the layout, in the order that it asks for; no rows, no file.

        A file ends with the row group that takes it past the target size. On an error nothing stays behind.
        """
        written: list[DataFileMeta] = []
        file: _OpenFile | None = None
        rows = _Regrouped(batches)
        try:
            while (sample := rows.peek()) is not None:
                file = self._open(sample, self._formats_by_level.get(level, self._format))
                while group := rows.next(file.row_group_rows):
                    file.write(group)
                    if file.size_bytes >= self.target_file_size:
                        break
                written.append(file.close(level, file_source, self._environment.clock.now_millis()))
                file = None
        except BaseException:
            if file is not None:
                file.abandon()
                self._delete(file.path)
            self.delete(written)
            raise
        return written

    def write_index(self, data: bytes) -> str:
        """A new index file, durable at once; its name."""
        name = self._paths.new_index_name(self._environment.new_name(), 0)
        self._environment.file_io.write_bytes(self._paths.index_path(name), data)
        return name

    def take_unsynced(self) -> list[str]:
        """Paths written since the last call; hand them to ``FileIO.sync``, best those of all buckets at once."""
        unsynced, self._unsynced = self._unsynced, []
        return unsynced

    def delete(self, files: Sequence[DataFileMeta]) -> None:
        """Delete files that no snapshot will ever name."""
        for file in files:
            self._delete(self._paths.data_file_path(self._partition_path, self._bucket, file.file_name))

    def _delete(self, path: str) -> None:
        self._unsynced = [unsynced for unsynced in self._unsynced if unsynced != path]
        self._environment.file_io.delete(path)

    def _open(self, sample: pa.RecordBatch, file_format: FileFormat) -> _OpenFile:
        name = self._paths.new_data_file_name(self._writer_uuid, self._file_count, file_format.extension)
        self._file_count += 1
        path = self._paths.data_file_path(self._partition_path, self._bucket, name)
        rows = self.layout.to_file(sample)
        output = self._environment.file_io.open_output(path)
        self._unsynced.append(path)
        try:
            writer = file_format.writer(output, self.layout.file_arrow_schema, rows)
        except BaseException:
            output.close()
            self._delete(path)
            raise
        return _OpenFile(self.layout, self.layout.new_tally(), writer, output, path=path, name=name)


class _OpenFile:
    """A file being written, and what its metadata will need of the rows that passed."""

    def __init__(
        self, layout: FileLayout, tally: FileTally, writer: FormatWriter, output: pa.NativeFile, *, path: str, name: str
    ) -> None:
        self.path = path
        self._layout = layout
        self._tally = tally
        self._writer = writer
        self._output = output
        self._name = name
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
        # Nested columns have no bounds; the names of those that have come with them.
        fields = [field for field in self._layout.schema.fields if not is_nested(field.type)]
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
        )

    def abandon(self) -> None:
        self._writer.abandon()
        self._output.close()


class _Regrouped:
    """Batches of any size, handed on in groups of a wanted number of rows; nothing is copied."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches: Iterator[pa.RecordBatch] = (batch for batch in batches if batch.num_rows)
        self._present: pa.RecordBatch | None = None

    def peek(self) -> pa.RecordBatch | None:
        if self._present is None:
            self._present = next(self._batches, None)
        return self._present

    def next(self, row_count: int) -> list[pa.RecordBatch]:
        group: list[pa.RecordBatch] = []
        missing = row_count
        while missing and (batch := self.peek()) is not None:
            group.append(batch.slice(0, missing))
            self._present = batch.slice(missing) if batch.num_rows > missing else None
            missing -= group[-1].num_rows
        return group


def _local_wall_clock_millis(epoch_millis: int) -> int:
    """The wall clock's reading as if it were UTC, which is how the format stores a creation time."""
    moment = datetime.fromtimestamp(epoch_millis / 1000, tz=UTC)
    offset = moment.astimezone().utcoffset() or timedelta()
    return epoch_millis + offset // timedelta(milliseconds=1)
