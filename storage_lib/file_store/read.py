"""Reads the rows of a split: merged for a batch reader, or change by change for a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from storage_lib.built_once import built_once
from storage_lib.errors import InvalidInputError, NotFoundError, SnapshotExpiredError
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_reader import DataFileReader
from storage_lib.file_store.data_file.key_cache import KeyCache
from storage_lib.file_store.data_file.row_group_keys import RowGroupKeys
from storage_lib.file_store.data_file.stored_columns import ColumnResolution, StoredColumns
from storage_lib.file_store.kind.table_kind import TableKind
from storage_lib.file_store.manifest.data_file_paths import DataFilePaths
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.merge_tree.key_value_table import KeyValueTable
from storage_lib.file_store.merge_tree.known_keys import KnownKeys
from storage_lib.file_store.merge_tree.merge_keys import Indices
from storage_lib.file_store.merge_tree.standing.hidden_by_added import hidden_by_added
from storage_lib.file_store.merge_tree.standing.newest_places import PlacesOfBuckets
from storage_lib.file_store.merge_tree.standing.standing_of_added import StandingPositions, standing_of_added
from storage_lib.file_store.merge_tree.standing.standing_rows import StandingRows, standing_rows
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.split import Split
from storage_lib.format.file_format import FileFormat
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.filter.predicate import Predicate


class FileStoreRead:
    """Reads splits. Threads may share it, and with it the cache of keys.

    All methods that read files raise ``SnapshotExpiredError`` if the split's snapshot expired during the read, and
    ``CorruptFileError`` for a file that differs from what its manifest says.
    """

    def __init__(
        self,
        *,
        kind: TableKind,
        schemas: SchemaVersions,
        formats: Sequence[FileFormat],
        environment: Environment,
        paths: TablePaths,
        data_files: DataFilePaths,
        snapshots: SnapshotHistory,
        key_cache_bytes: int,
    ) -> None:
        self._kind = kind
        self._schemas = schemas
        self._formats = tuple(formats)
        self._environment = environment
        self._paths = paths
        self._data_files = data_files
        self._snapshots = snapshots
        self._key_cache_bytes = key_cache_bytes
        self._columns = ColumnResolution(kind.layout, schemas)

    @built_once
    def _key_cache(self) -> KeyCache:
        return KeyCache(self._key_cache_bytes)

    @built_once
    def _known_keys(self) -> KnownKeys:
        return KnownKeys(self._key_cache_bytes)

    @built_once
    def _newest_places(self) -> PlacesOfBuckets:
        return PlacesOfBuckets(self._key_cache_bytes)

    def read(
        self,
        split: Split,
        columns: Sequence[str] | None = None,
        predicate: Predicate | None = None,
        *,
        ordered: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the matching rows of the split, with ``columns`` (default: all) in the given order.

        Rows are merged by the rules of the table's kind. ``predicate`` should be the one the split was planned with.
        ``ordered`` sorts the split's rows by key. Raises ``InvalidInputError`` for a key range of a table without an
        order of keys.
        """
        schema = self._kind.layout.schema
        if split.key_range is not None and self._kind.comparable_key is None:
            message = f"split of bucket {split.bucket} has a key range, but the table's files are not sorted by a key"
            raise InvalidInputError(message)
        with self._expiry_explained(split):
            yield from self._kind.read(
                split.files,
                self.reader(split.partition, split.bucket),
                columns=[field.name for field in schema.fields] if columns is None else columns,
                predicate=None if predicate is None else predicate.validated(schema),
                ordered=ordered,
                key_range=split.key_range,
            )

    def changes(self, split: Split) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Yield the rows and kinds (int8) stored in the files, file after file, unmerged."""
        with self._expiry_explained(split):
            yield from self._kind.changes(split.files, self.reader(split.partition, split.bucket))

    def newest_versions(
        self, split: Split, columns: Sequence[str], predicate: Predicate | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the newest version of each key, also where it deletes the row; otherwise as ``read``.

        REQUIRES a table with a primary key.
        """
        kind = self._kind
        assert isinstance(kind, KeyValueTable)  # noqa: S101  of the tables with a primary key
        with self._expiry_explained(split):
            yield from kind.newest_versions(
                split.files,
                self.reader(split.partition, split.bucket),
                columns=columns,
                predicate=None if predicate is None else predicate.validated(kind.layout.schema),
            )

    def standing_rows(self, split: Split) -> Iterator[StandingRows]:
        """Yield which rows of the split's files are rows of the table; see ``merge_tree/standing/standing_rows.py``.

        REQUIRES a table with a primary key, and files of which ``KeyValueTable.stores_rows`` is true: those of the
        merge engines deduplicate and first-row always.
        """
        kind = self._kind
        assert isinstance(kind, KeyValueTable)  # noqa: S101  of the tables with a primary key
        with self._expiry_explained(split):
            yield from standing_rows(
                split.files,
                reader=self.reader(split.partition, split.bucket),
                key_value=kind.layout,
                merge_function=kind.choice,
                lowest_counts=kind.looks_up,
                key_range=split.key_range,
            )

    def standing_of_added(self, split: Split, added: Collection[str]) -> list[StandingPositions] | None:
        """Return which rows with a key of the ``added`` files stand; see ``merge_tree/standing/standing_of_added.py``.

        None as there, and for merge engines that combine versions. REQUIRES a table with a primary key.
        """
        kind = self._kind
        assert isinstance(kind, KeyValueTable)  # noqa: S101  of the tables with a primary key
        if kind.combines:
            return None
        with self._expiry_explained(split):
            return standing_of_added(
                split.files,
                added,
                reader=self.reader(split.partition, split.bucket),
                key_value=kind.layout,
                merge_function=kind.merge_function,
                lowest_counts=kind.looks_up,
                known_keys=self._known_keys,
            )

    def hidden_by_added(self, split: Split, added: Collection[str]) -> Mapping[str, Indices] | None:
        """Return positions by file name of rows that stand no longer; see ``merge_tree/standing/hidden_by_added.py``.

        None as there, and for tables whose rows are not simply the newest versions. REQUIRES all live files of a bucket
        of a table with a primary key, none with a deletion vector.
        """
        kind = self._kind
        assert isinstance(kind, KeyValueTable)  # noqa: S101  of the tables with a primary key
        if kind.combines or not kind.merge_function.keeps_newest:
            return None
        with self._expiry_explained(split):
            found = hidden_by_added(
                split.files,
                added,
                reader=self.reader(split.partition, split.bucket),
                key_value=kind.layout,
                known_keys=self._known_keys,
                index=self._newest_places.of(split.partition, split.bucket),
                index_bytes_max=self._newest_places.index_bytes_max,
            )
        if found is None:
            return None
        self._newest_places.keep(split.partition, split.bucket, found.index)
        return found.positions

    def path_of(self, entry: ManifestEntry) -> str:
        """Return the path of an entry's data file, for ``FileIO``."""
        return self._data_files.of(entry)[0]

    def stored_columns(self, schema_id: int, columns: Sequence[str]) -> StoredColumns:
        """Return the locations of the columns in files written under that schema."""
        return self._columns.of(schema_id, tuple(columns))

    def row_group_keys(self, split: Split, file: DataFileMeta) -> Sequence[RowGroupKeys] | None:
        """Return the bounds of the keys in each row group of a file of the split; see ``DataFileReader``.

        Raises as the other methods.
        """
        with self._expiry_explained(split):
            return self.reader(split.partition, split.bucket).row_group_keys(file)

    def reader(self, partition: bytes, bucket: int) -> DataFileReader:
        """Return a reader for the data files of one bucket."""
        return DataFileReader(
            layout=self._kind.layout,
            schemas=self._schemas,
            columns=self._columns,
            formats=self._formats,
            environment=self._environment,
            paths=self._paths,
            partition_path=self._data_files.partition_path(partition),
            bucket=bucket,
            key_cache=self._key_cache,
        )

    @contextmanager
    def _expiry_explained(self, split: Split) -> Iterator[None]:
        """Explain a missing file: its snapshot expired, or the table is damaged; the history tells which."""
        try:
            yield
        except NotFoundError as error:
            earliest_id = self._snapshots.earliest_id()
            if earliest_id is None or split.snapshot_id >= earliest_id:
                raise
            message = (
                f"snapshot {split.snapshot_id} expired while it was read ({error}); the earliest kept is "
                f"{earliest_id}: plan the read again"
            )
            raise SnapshotExpiredError(message) from error
