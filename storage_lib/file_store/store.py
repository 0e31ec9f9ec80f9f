"""Storage of one table: files in buckets, made visible by snapshots. Entry point to all operations on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage_lib.built_once import built_once
from storage_lib.file_store.cleanup.external_claims import ExternalClaims
from storage_lib.file_store.cleanup.file_deletion import FileDeletion
from storage_lib.file_store.cleanup.references import FileReferences
from storage_lib.file_store.commit import FileStoreCommit
from storage_lib.file_store.commit_message import CommitMessage
from storage_lib.file_store.committing.file_copies import FileCopies
from storage_lib.file_store.committing.restored_files import RestoredFiles
from storage_lib.file_store.committing.snapshot_draft import SnapshotDraft
from storage_lib.file_store.committing.snapshot_view import SnapshotView
from storage_lib.file_store.compact import FileStoreCompact
from storage_lib.file_store.data_file.data_file_meta import DataFileMeta
from storage_lib.file_store.data_file.data_file_writer import DataFileWriter
from storage_lib.file_store.data_file.file_layout import FileLayout
from storage_lib.file_store.data_file.key_value import KeyValueSchema
from storage_lib.file_store.dynamic_bucket.hash_indexes import HashIndexes
from storage_lib.file_store.expire import ChangelogRetention, FileStoreExpire
from storage_lib.file_store.kind.foreign_features import refuse_unsupported_features
from storage_lib.file_store.kind.kind_choice import kind_of
from storage_lib.file_store.kind.table_kind import BucketCompactor, BucketWriter, TableKind
from storage_lib.file_store.manifest.data_file_paths import DataFilePaths
from storage_lib.file_store.manifest.index_manifest import NO_INDEXES, IndexManifest
from storage_lib.file_store.manifest.manifest_directory import ManifestDirectory
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.manifest.manifest_merge import ManifestMerge
from storage_lib.file_store.manifest.partition_bounds import PartitionBounds
from storage_lib.file_store.merge_tree.changelog_file import published_files, write_changes
from storage_lib.file_store.merge_tree.increment import Increment
from storage_lib.file_store.orphan_files import OrphanFiles
from storage_lib.file_store.planning.key_cuts import KeyCuts, KeyOrder
from storage_lib.file_store.read import FileStoreRead
from storage_lib.file_store.rejected.rejected_change import RejectedChange
from storage_lib.file_store.rejected.rejected_directory import RejectedDirectory
from storage_lib.file_store.rejected.rejected_pointer import RejectedPointer
from storage_lib.file_store.scan import FileStoreScan
from storage_lib.file_store.snapshot.branch_directory import BranchDirectory
from storage_lib.file_store.snapshot.changelog_history import ChangelogHistory
from storage_lib.file_store.snapshot.consumer_directory import ConsumerDirectory
from storage_lib.file_store.snapshot.schema_in_force import rewritten_since, schema_in_force
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.snapshot.snapshot_history import SnapshotHistory
from storage_lib.file_store.snapshot.tag_directory import TagDirectory
from storage_lib.file_store.split import Split
from storage_lib.file_store.write import FileStoreWrite
from storage_lib.format.formats import all_formats, format_of, formats_by_level
from storage_lib.io.environment import Environment
from storage_lib.io.table_directory.table_paths import TablePaths
from storage_lib.schema.evolution.schema_history import SchemaHistory
from storage_lib.schema.evolution.schema_versions import SchemaVersions
from storage_lib.schema.options.event_time import EventTime, event_time_of
from storage_lib.schema.options.external_paths import ExternalPaths, external_paths_of
from storage_lib.schema.options.table_options import ChangelogProducer, TableOptions
from storage_lib.schema.placing.bucketing import key_hashes
from storage_lib.schema.placing.layout import layout_of
from storage_lib.schema.placing.partition import PartitionCodec
from storage_lib.schema.table_schema import TableSchema

_SEQUENCE_BLOCK = 1 << 32
"""Sequence numbers reserved for each task of a commit."""


class FileStore:
    """Write, commit, scan, read, compact and expire one table. ``table`` is its name in messages.

    One object may serve several threads and many commits; it caches the table's metadata. Parts are built when they are
    first used. Raises ``InvalidInputError`` for a table of another engine whose options require unsupported features.
    """

    def __init__(
        self,
        *,
        table: str,
        environment: Environment,
        paths: TablePaths,
        schema: TableSchema,
        options: TableOptions,
        view_of: Callable[[FileStore], SnapshotView | None] | None = None,
    ) -> None:
        """``view_of`` returns a view that follows the snapshots of this store, and of the same under other schemas."""
        self._view_of = view_of
        refuse_unsupported_features(table, schema, options)
        self._table = table
        self._environment = environment
        self._paths = paths
        self._schema = schema
        self._options = options
        self._kind = kind_of(table, schema, options)
        self._schemas = SchemaVersions(schema, SchemaHistory(environment.file_io, paths))
        self._format = self._kind.file_format(format_of(options))
        self._formats_by_level = {
            level: self._kind.file_format(each) for level, each in formats_by_level(options).items()
        }
        self._partitions = PartitionCodec(schema)
        self._data_files = DataFilePaths(paths, self._partitions)
        # Writers need the router of stores only if new files may be on another store than the warehouse.
        is_external = bool(external_paths_of(schema.options).directories)
        self._writing = replace(environment, file_io=environment.stores) if is_external else environment

    def check_still_there(self) -> None:
        """Raise ``NotFoundError`` if the table was dropped, or dropped and recreated, since it was opened."""
        self._schemas.check_still_there(self._table)

    def is_of_newest_schema(self) -> bool:
        """Whether the table has no newer version of its schema: one listing."""
        return self._schemas.is_newest()

    def of_newest_schema(self) -> FileStore:
        """Return this store, or one with the table's newest schema, to rewrite rows written under that schema."""
        if self.is_of_newest_schema():
            return self
        newest = schema_in_force(self._environment.file_io, self._paths)
        return self if newest is None or newest.id <= self._schema.id else self.of_schema(newest.id)

    def may_lack_columns_of(self, snapshot: Snapshot | None) -> bool:
        """Whether rows of a snapshot may have values in columns that were added after this store's schema."""
        return snapshot is not None and snapshot.schema_id > self._schema.id

    def version(self, schema_id: int) -> TableSchema:
        """Return one version of the table's schema; raises as ``SchemaHistory.load``."""
        return self._schemas.of(schema_id)

    def check_layout(self, snapshot: Snapshot | None) -> None:
        """Refuse a snapshot (usually the newest) made after the table was rewritten under another layout.

        Raises ``CommitConflictError``: the caller has to load the table again.
        """
        if snapshot is None or snapshot.schema_id <= self._schema.id:
            return
        newer = self._schemas.of(snapshot.schema_id)
        if layout_of(newer) != layout_of(self._schema):
            raise rewritten_since(self._table, self._schema, newer)

    def of_schema(self, schema_id: int) -> FileStore:
        """Return a store for the same table under another version of its schema; raises as ``SchemaHistory.load``."""
        schema = self._schemas.of(schema_id)
        return FileStore(
            table=self._table,
            environment=self._environment,
            paths=self._paths,
            schema=schema,
            options=TableOptions.parse(schema.options),
            view_of=self._view_of,
        )

    @built_once
    def view(self) -> SnapshotView | None:
        """View in another format that follows the table's snapshots; None if it has none."""
        return None if self._view_of is None else self._view_of(self)

    def newest_view(self) -> SnapshotView | None:
        """Return the view that the table's newest schema asks for: who deletes files has to know of it."""
        return self.of_newest_schema().view

    @property
    def kind(self) -> TableKind:
        """How rows of the table are laid out and merged."""
        return self._kind

    @property
    def schema(self) -> TableSchema:
        """Schema in which rows are read and written."""
        return self._schema

    def new_write(
        self, base: Snapshot | None, *, overwrite: bool = False, stored_rows: bool = False, sequence_block: int = 0
    ) -> FileStoreWrite:
        """Return a writer for one commit whose rows are newer than all of ``base`` (None: a table without a commit).

        If several writers of one commit may write to the same bucket, each numbers its rows in its own
        ``sequence_block``. With ``overwrite`` its rows are older than all later commits: for ``commit.overwrite``.
        ``stored_rows``: the rows of an overwrite were read from this table, so that merge functions leave them as they
        are; a count is a count then, and not a value to be counted.
        """

        def new_writer(partition: bytes, bucket: int) -> BucketWriter:
            data_files = self._data_file_writer(partition, bucket)
            if overwrite:
                reader = self.read.reader(partition, bucket)
                return self._kind.overwriter(data_files, reader, stored_rows=stored_rows)
            live = self.scan.live_files(base, partitions=(partition,)).of(partition, bucket)
            # Rows of an overwrite have sequence number 0, and later rows have to be newer.
            newest = max((entry.file.max_sequence_number for entry in live), default=0)
            return self._kind.writer(data_files, next_sequence=newest + 1 + sequence_block * _SEQUENCE_BLOCK)

        return FileStoreWrite(
            file_io=self._writing.file_io,
            new_writer=new_writer,
            abort_messages=self.abort,
            bucket_count=self._schema.bucket_count,
            memtable_bytes_max=self._options.write_buffer_size_bytes,
            event_time=self._event_time,
        )

    @built_once
    def snapshots(self) -> SnapshotHistory:
        """The table's snapshots."""
        return SnapshotHistory(self._environment.file_io, self._paths, self._environment.clock)

    @built_once
    def tags(self) -> TagDirectory:
        """The table's tags."""
        return TagDirectory(self._environment.file_io, self._paths, self._environment.clock)

    @built_once
    def consumers(self) -> ConsumerDirectory:
        """Progress of the table's consumers."""
        return ConsumerDirectory(self._environment, self._paths)

    @built_once
    def branches(self) -> BranchDirectory:
        """The table's branches."""
        return BranchDirectory(self._environment.file_io, self._paths, self._environment.clock)

    @built_once
    def scan(self) -> FileStoreScan:
        """Plans reads: finds the live files of a snapshot."""
        return FileStoreScan(
            snapshots=self.snapshots,
            manifests=self._manifests,
            schemas=self._schemas,
            grouping=self._kind,
            partitions=self._partitions,
        )

    @built_once
    def deletion(self) -> FileDeletion:
        """Deletes files of the table."""
        return FileDeletion(self._environment, self._paths, self._schema)

    @built_once
    def _manifests(self) -> ManifestDirectory:
        return ManifestDirectory(self._environment.file_io, self._paths)

    @built_once
    def _event_time(self) -> EventTime | None:
        return event_time_of(self._schema)

    @built_once
    def commit(self) -> FileStoreCommit:
        """Creates snapshots from commit messages."""
        merge = ManifestMerge(
            target_file_size=self._options.manifest_target_file_size_bytes,
            merge_min_count=self._options.manifest_merge_min_count,
            full_threshold_bytes=self._options.manifest_full_compaction_size_bytes,
        )
        partition_types = [field.type for field in self._schema.partition_fields]

        def new_draft() -> SnapshotDraft:
            return SnapshotDraft(
                manifests=self._manifests,
                merge=merge,
                bounds=PartitionBounds(partition_types),
                new_name=self._environment.new_name,
            )

        def indexes_of(snapshot: Snapshot | None) -> IndexManifest:
            name = None if snapshot is None else snapshot.index_manifest
            return NO_INDEXES if name is None else self._manifests.read_index(name)

        def new_restore(target: Snapshot) -> RestoredFiles:
            return RestoredFiles(
                self.scan.live_files(target),
                indexes=indexes_of(target),
                copies=FileCopies(
                    environment=replace(self._environment, file_io=self._environment.stores),
                    paths=self._paths,
                    data_files=self._data_files,
                    external=self._external_paths,
                    delete=self.deletion.delete,
                ),
                indexes_of=indexes_of,
                others_expire=self._options.others_expire,
            )

        return FileStoreCommit(
            table=self._table,
            environment=self._environment,
            snapshots=self.snapshots,
            scan=self.scan,
            new_draft=new_draft,
            new_restore=new_restore,
            schema_id=self._schema.id,
            check_layout=self.check_layout,
            comparable_key=self._kind.comparable_key,
            abort=self.abort,
            check_table=self.check_still_there,
            view=self.view,
        )

    @built_once
    def read(self) -> FileStoreRead:
        """Reads the splits of a plan."""
        return FileStoreRead(
            kind=self._kind,
            schemas=self._schemas,
            formats=[self._kind.file_format(each) for each in all_formats()],
            environment=self._environment,
            paths=self._paths,
            data_files=self._data_files,
            snapshots=self.snapshots,
            key_cache_bytes=self._options.lookup_cache_max_memory_size,
        )

    @built_once
    def key_cuts(self) -> KeyCuts:
        """Divides splits of a plan that have to be merged into splits of key ranges."""
        layout, order = self._kind.layout, None
        if isinstance(layout, KeyValueSchema) and self._kind.comparable_key is not None:
            order = KeyOrder(types=layout.key_types, comparable_key=layout.comparable_key)
        return KeyCuts(
            order=order,
            row_group_keys=self.read.row_group_keys,
        )

    @built_once
    def hash_indexes(self) -> HashIndexes:
        """Index of the keys in dynamic buckets."""

        def read_hashes(split: Split) -> npt.NDArray[np.int32]:
            names = [field.name for field in self._schema.key_fields]
            hashes = [key_hashes(batch, self._schema) for batch in self.read.read(split, names, None)]
            return np.concatenate([np.empty(0, np.int32), *hashes])

        return HashIndexes(
            environment=self._environment,
            paths=self._paths,
            manifests=self._manifests,
            scan=self.scan,
            read_hashes=read_hashes,
        )

    @built_once
    def compact(self) -> FileStoreCompact:
        """Compacts buckets; its messages go to ``commit``."""

        def new_compactor(partition: bytes, bucket: int) -> BucketCompactor:
            return self._kind.compactor(self._data_file_writer(partition, bucket), self.read.reader(partition, bucket))

        return FileStoreCompact(
            scan=self.scan,
            kind=self._kind,
            new_compactor=new_compactor,
            file_io=self._writing.file_io,
        )

    @built_once
    def expire(self) -> FileStoreExpire:
        """Expires old snapshots and the files only they need."""
        return FileStoreExpire(
            snapshots=self.snapshots,
            consumers=self.consumers,
            references=self.references,
            deletion=self.deletion,
            check_table=self.check_still_there,
            changelogs=ChangelogHistory(self._environment.file_io, self._paths),
            changelog_retention=self._changelog_retention,
            commit_retention_ms=self._options.commit_identity_time_retained_ms,
            clock=self._environment.clock,
            newest_view=self.newest_view,
        )

    @property
    def _changelog_retention(self) -> ChangelogRetention | None:
        options = self._options
        if not options.keeps_changelogs:
            return None
        return ChangelogRetention(
            count_min=options.effective_changelog_num_retained_min,
            count_max=options.effective_changelog_num_retained_max,
            time_ms=options.effective_changelog_time_retained_ms,
        )

    @built_once
    def references(self) -> FileReferences:
        """Files that snapshots, tags and branches need."""
        return FileReferences(
            paths=self._paths,
            manifests=self._manifests,
            data_files=self._data_files,
            branches=self.branches,
            rejected=self.rejected,
            writes_changelog=self.writes_changelog,
        )

    @built_once
    def rejected(self) -> RejectedDirectory:
        """Files of rejected records."""
        return RejectedDirectory(self._environment, self._paths)

    def rejected_change(self, added: pa.Table | None = None, resolved: Sequence[str] = ()) -> RejectedChange:
        """Return a commit's change of the rejected records."""
        return RejectedChange(
            table=self._table,
            environment=self._environment,
            directory=self.rejected,
            retention_ms=self._options.rejected_retention_ms,
            added=added,
            resolved=resolved,
        )

    def has_expired(self, rejected: RejectedPointer) -> bool:
        """Return whether some of the rejected records are older than the table keeps them."""
        return rejected.first_expiry_millis < self._environment.clock.now_millis() - self._options.rejected_retention_ms

    @built_once
    def orphans(self) -> OrphanFiles:
        """Finds files that nothing needs."""
        return OrphanFiles(
            table=self._table,
            file_io=self._environment.stores,
            paths=self._paths,
            references=self.references,
            deletion=self.deletion,
            branches=self.branches,
            partition_depth=len(self._schema.partition_keys),
            check_table=self.check_still_there,
            newest_view=self.newest_view,
        )

    @property
    def writes_changelog(self) -> bool:
        """Whether the table's snapshots record their changes in changelog files."""
        return bool(self._schema.primary_keys) and self._options.changelog_producer is not ChangelogProducer.NONE

    def published(self, files: Iterable[DataFileMeta]) -> list[DataFileMeta]:
        """Return the files whose rows have already been published in the changelog."""
        return published_files(files, self._options)

    def changelog_message(
        self, partition: bytes, bucket: int, bucket_count: int, changes: Sequence[tuple[pa.RecordBatch, pa.Array]]
    ) -> CommitMessage:
        """Write changes (rows, int8 kinds) of one bucket to durable changelog files, for the commit that makes them."""
        layout = self._kind.layout
        assert isinstance(layout, KeyValueSchema)  # noqa: S101  ``writes_changelog``
        data_files = self._data_file_writer(partition, bucket)
        written = write_changes(layout, data_files, changes)
        self._writing.file_io.sync(data_files.take_unsynced())
        increment = Increment(new_changelog=tuple(written))
        return CommitMessage(partition=partition, bucket=bucket, bucket_count=bucket_count, increment=increment)

    def path_of(self, entry: ManifestEntry) -> str:
        """Return the path of an entry's data file."""
        return self._data_files.of(entry)[0]

    def abort(self, messages: Sequence[CommitMessage], *, committed: Snapshot | None = None) -> None:
        """Delete the data files of messages that were not, and will not be, committed.

        Live files are kept: a caller may have repeated a commit that had already succeeded with the very same messages.
        If it knows the snapshot of that commit, ``committed``, the files of that snapshot are kept as well.
        Must not be called after ``CommitOutcomeUnknownError``.
        """
        partitions = {message.partition for message in messages}
        live = self.scan.live_files(self.snapshots.latest(), partitions=partitions)
        live_names = {
            entry.file.file_name
            for partition in partitions
            for bucket in live.buckets_of(partition)
            for entry in live.of(partition, bucket)
        }
        if committed is not None:
            live_names |= {entry.file.file_name for entry in self.scan.delta(committed)}
            live_names |= {entry.file.file_name for entry in self.scan.changelog(committed)}
        named = self._index_files_of(self.snapshots.latest()) | self._index_files_of(committed)
        for message in messages:
            increment = message.increment
            vectors = increment.vectors
            if vectors is not None and vectors.index_file is not None and vectors.index_file not in named:
                self._environment.file_io.delete(self._paths.index_path(vectors.index_file), below=self._paths.root)
            indexed = message.hash_index
            if indexed is not None and indexed.file is not None and indexed.file.file_name not in named:
                path = self._paths.index_path(indexed.file.file_name)
                self._environment.file_io.delete(path, below=self._paths.root)
            moved = {file.file_name for file in increment.compact_before}
            changelog = (*increment.new_changelog, *increment.compact_changelog)
            for file in (*increment.new_files, *increment.compact_after, *changelog):
                if file.file_name not in live_names and file.file_name not in moved:
                    self.deletion.delete_all(self._data_files.of_file(message.partition, message.bucket, file))

    def _index_files_of(self, snapshot: Snapshot | None) -> set[str]:
        if snapshot is None or snapshot.index_manifest is None:
            return set()
        return set(self._manifests.index_file_names(snapshot.index_manifest))

    @built_once
    def _external_paths(self) -> ExternalPaths:
        """Directories for new files. Raises ``InvalidInputError`` if one belongs to another table."""
        external = external_paths_of(self._schema.options)
        claims = ExternalClaims(self._environment.stores, self._paths.root)
        for directory in external.directories:
            claims.refuse_others(directory)
        return external

    @built_once
    def _layout_of_files(self) -> FileLayout:
        """Columns of new files. Raises ``InvalidInputError`` naming a column whose type a format can't store."""
        layout = self._kind.layout
        for each in (self._format, *self._formats_by_level.values()):
            each.refuse_unsupported(layout.file_arrow_schema)
        return layout

    def _data_file_writer(self, partition: bytes, bucket: int) -> DataFileWriter:
        return DataFileWriter(
            layout=self._layout_of_files,
            file_format=self._format,
            formats_by_level=self._formats_by_level,
            environment=self._writing,
            paths=self._paths,
            partition_path=self._data_files.partition_path(partition),
            bucket=bucket,
            target_file_size=self._options.target_file_size_bytes,
            external=self._external_paths,
            delete=self.deletion.delete,
        )
