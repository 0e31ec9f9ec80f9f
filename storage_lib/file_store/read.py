"""A split's files -> rows: merged for a batch reader, or change by change for a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from storage_lib.errors import NotFoundError, SnapshotExpiredError
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_value import VALUE_KIND, KeyValueSchema
from storage_lib.file_store.data_file_paths import DataFilePaths
from storage_lib.file_store.merge_tree.merge_function.deduplicate import DEDUPLICATE
from storage_lib.file_store.merge_tree.merge_function.merge_function import MergeFunction
from storage_lib.file_store.merge_tree.merge_tree_reader import BATCH_ROWS_MAX, read_merged
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.split import Split
from storage_lib.format.file_format import FileFormat
from storage_lib.io.file_io import FileIO
from storage_lib.io.table_paths import TablePaths
from storage_lib.schema.predicate import Predicate
from storage_lib.schema.schema_versions import SchemaVersions


class FileStoreRead:
    """Reads splits; holds no state, so threads may share it.

    Both ways of reading raise ``SnapshotExpiredError`` if the split's snapshot was expired under the reader, and
    ``CorruptFileError`` for a file that is not what its manifest says.
    """

    def __init__(
        self,
        *,
        key_value: KeyValueSchema,
        schemas: SchemaVersions,
        formats: Sequence[FileFormat],
        file_io: FileIO,
        paths: TablePaths,
        data_files: DataFilePaths,
        snapshots: SnapshotHistory,
        merge_function: MergeFunction = DEDUPLICATE,
    ) -> None:
        self._key_value = key_value
        self._merge_function = merge_function
        self._schemas = schemas
        self._formats = tuple(formats)
        self._file_io = file_io
        self._paths = paths
        self._data_files = data_files
        self._snapshots = snapshots

    def read(
        self,
        split: Split,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        ordered: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the split that match, one per key, with ``columns`` (default: all) in the order asked.

        ``predicate`` should be the one the split was planned with. ``ordered`` sorts the split's rows by key.
        """
        with self._expiry_explained(split):
            yield from read_merged(
                split.files,
                reader=self.reader(split.partition, split.bucket),
                key_value=self._key_value,
                merge_function=self._merge_function,
                columns=self._key_value.value_names if columns is None else columns,
                predicate=None if predicate is None else predicate.validated(self._key_value.schema),
                ordered=ordered,
            )

    def changes(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Rows and kinds (int8) as they stand in the files, file after file, unmerged."""
        names = [VALUE_KIND, *self._key_value.value_names]
        reader = self.reader(split.partition, split.bucket)
        with self._expiry_explained(split):
            for file in split.files:
                for batch in reader.read(file, names, batch_rows=BATCH_ROWS_MAX):
                    yield batch.select(names[1:]), batch.column(VALUE_KIND)

    def reader(self, partition: bytes, bucket: int) -> DataFileReader:
        """Of the files of one bucket."""
        return DataFileReader(
            key_value=self._key_value,
            schemas=self._schemas,
            formats=self._formats,
            file_io=self._file_io,
            paths=self._paths,
            partition_path=self._data_files.partition_path(partition),
            bucket=bucket,
        )

    @contextmanager
    def _expiry_explained(self, split: Split) -> Iterator[None]:
        """A file that is gone means an expired snapshot, or a broken table; only the history tells which."""
        try:
            yield
        except NotFoundError as error:
            earliest_id = self._snapshots.earliest_id()
            if earliest_id is None or split.snapshot_id >= earliest_id:
                raise
            message = (
                f"snapshot {split.snapshot_id} was expired while it was read ({error}); the earliest kept is "
                f"{earliest_id}: plan again from there"
            )
            raise SnapshotExpiredError(message) from error
