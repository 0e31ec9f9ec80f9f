"""Publishes one snapshot in the view: the difference to the one before, as manifests, delete files and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyroaring import BitMap64

from storage_lib.errors import SnapshotExpiredError, StorageError
from storage_lib.file_store.manifest.manifest_entry import ManifestEntry
from storage_lib.file_store.merge_tree.key_value_table import KeyValueTable
from storage_lib.file_store.planning.file_pruning import file_stats, is_ours
from storage_lib.file_store.snapshot.snapshot import CommitKind, Snapshot
from storage_lib.file_store.snapshot.tag import VIEW_TAG_PREFIX, WORK_TAG_PREFIX
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.encode.column_metrics import column_metrics
from storage_lib.iceberg.encode.delete_file import encode_delete_file
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.iceberg.encode.iceberg_schema import iceberg_schema
from storage_lib.iceberg.encode.partition_record import partition_record
from storage_lib.iceberg.encode.table_metadata import (
    EVERY_SNAPSHOT,
    MAIN,
    MERGED_SNAPSHOTS,
    ShownSnapshot,
    ViewMetadata,
)
from storage_lib.iceberg.publish.known_masks import KnownMasks
from storage_lib.iceberg.publish.next_masks import FileChange, next_masks, stores_rows
from storage_lib.iceberg.publish.shown_files import is_of_this_library, refuse_unfit_files
from storage_lib.iceberg.publish.view_content import ContentChange, ViewContent, ViewContents
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.io.file_io import FileIO
from storage_lib.schema.options.table_options import IcebergVersion
from storage_lib.schema.placing.partition import PartitionCodec

_DELTAS_MAX = 50
"""Snapshots between two that the view shows, above which the masks of all files are computed again."""


class ViewPublisher:
    """Publishes snapshots of one table. Thread-safe."""

    def __init__(
        self,
        directory: ViewDirectory,
        contents: ViewContents,
        *,
        table: str,
        table_uuid: str,
        location: str,
        version: IcebergVersion,
        stores: FileIO,
    ) -> None:
        """``table_uuid`` is Iceberg's; ``location`` the table's directory. Data files are in ``stores``."""
        self._version = version
        self._stores = stores
        self._directory = directory
        self._contents = contents
        self.masks = KnownMasks(directory)
        self._table = table
        self._table_uuid = table_uuid
        self._location = location

    def empty(self, store: FileStore, time_millis: int) -> ViewMetadata:
        """Return the metadata of a table without a snapshot."""
        schema = store.schema
        return ViewMetadata(
            version=self._version,
            table_uuid=self._table_uuid,
            location=self._location,
            snapshot_id=0,
            identity="",
            schema_id=schema.id,
            updated_millis=time_millis,
            next_row_id=0,
            schemas={schema.id: iceberg_schema(schema)},
            snapshots=(),
            tags={},
            freshness=_freshness(store),
        )

    def can_show(self, store: FileStore, snapshot: Snapshot) -> bool:
        """Return whether each row of a snapshot is in a data file as it is, so that Iceberg's readers find it."""
        return not waits_for_merges(store) or stores_rows(store, store.scan.entries(snapshot))

    def publish(self, store: FileStore, before: ViewMetadata | None, snapshot: Snapshot) -> ViewMetadata | None:
        """Publish a snapshot upon the newest one in the view; return None if another process has published it.

        ``store`` is under the snapshot's schema. REQUIRES ``can_show``. If ``before`` is None, or snapshots between the
        two have expired, nothing is taken over from its masks. Raises ``InvalidInputError`` for a file that Iceberg
        can't show.
        """
        written: dict[str, bytes] = {}
        metadata = self._encoded(store, before, snapshot, written)
        try:
            self._directory.write(written)
            self._directory.sync([*written])
        except Exception:
            self._delete(written)
            raise
        # Whatever goes wrong here, the metadata may be there, and name these files; orphan cleanup deletes others.
        is_new = self._directory.create(metadata, store.schema)
        if not is_new:
            self._delete(written)
        return metadata if is_new else None

    def _encoded(
        self, store: FileStore, before: ViewMetadata | None, snapshot: Snapshot, written: dict[str, bytes]
    ) -> ViewMetadata:
        """Return the metadata of a snapshot; ``written`` gets the files that it needs, by path."""
        shown = None if before is None else before.current
        content = ViewContent() if shown is None else self._contents.read(shown.manifest_list)
        files = content.data_files()
        live = {store.path_of(entry): entry for entry in store.scan.entries(snapshot)}
        since = None if before is None else _since(store, before.snapshot_id, snapshot)
        hiding = content.delete_files()
        is_same_schema = shown is not None and shown.schema_id == store.schema.id

        def mask_before(path: str) -> BitMap64 | None:
            if path in hiding:
                return self.masks.of(hiding[path]) if is_same_schema else None
            return BitMap64() if is_same_schema and path in files else None

        added_paths = frozenset(live.keys() - files.keys())
        change = FileChange(live=live, added=added_paths, since=since, mask_before=mask_before)
        are_ours = since is not None and all(map(is_of_this_library, since))
        refuse_unfit_files(self._table, self._stores, change.added, are_ours=are_ours)
        hidden: dict[str, ListedFile | None] = {}
        partitions = _Partitions(store)
        for path, mask in next_masks(store, change):
            old = hiding.get(path)
            if not mask:
                if old is not None:
                    hidden[path] = None
                continue
            if old is not None and old.row_count == len(mask) and self.masks.of(old) == mask:
                continue
            encoded = encode_delete_file(mask, path, self._version)
            place = self._directory.path(f"{self._contents.new_name()}.{encoded.suffix}")
            written[place] = encoded.data
            self.masks.keep(place, mask, len(encoded.data))
            hidden[path] = ListedFile(
                path=place,
                row_count=len(mask),
                size_bytes=len(encoded.data),
                partition=partitions.record(live[path]),
                sequence=snapshot.id,
                bounds=encoded.bounds,
                data_file=path,
                offset=encoded.offset,
                blob_size=encoded.blob_size,
            )
        added = [
            ListedFile(
                path=path,
                row_count=live[path].file.row_count,
                size_bytes=live[path].file.file_size,
                partition=partitions.record(live[path]),
                sequence=snapshot.id,
                bounds=_metrics(store, live[path]),
            )
            for path in sorted(change.added)
        ]
        schemas = {} if before is None else before.schemas
        own_schema = iceberg_schema(store.schema)
        next_row_id = 0 if before is None else before.next_row_id
        first_row_id = next_row_id if self._version is IcebergVersion.V3 else None
        next_content = ContentChange(
            sequence=snapshot.id,
            first_row_id=first_row_id,
            added=added,
            removed=files.keys() - live.keys(),
            hidden=hidden,
        )
        manifest_list, after = self._contents.encode(
            content,
            next_content,
            schema=store.schema,
            iceberg_schema=own_schema,
            version=self._version,
            parent=None if shown is None else shown.id,
            written=written,
        )
        added_rows = sum(each.row_count for each in added)
        newest = ShownSnapshot(
            id=snapshot.id,
            parent=None if shown is None else shown.id,
            time_millis=snapshot.time_millis,
            manifest_list=manifest_list,
            summary=_summary(snapshot, None if shown is None else shown.id, next_content, after),
            schema_id=store.schema.id,
            first_row_id=first_row_id,
            added_rows=added_rows,
        )
        snapshots = (*(() if before is None else _unexpired(store, before.snapshots)), newest)
        return ViewMetadata(
            version=self._version,
            table_uuid=self._table_uuid,
            location=self._location,
            snapshot_id=snapshot.id,
            identity=identity_of(snapshot),
            # A process that opened the table before it was altered writes under the older schema.
            schema_id=max(store.schema.id, 0 if before is None else before.schema_id),
            updated_millis=snapshot.time_millis,
            next_row_id=next_row_id + added_rows,
            schemas={**schemas, store.schema.id: own_schema},
            snapshots=snapshots,
            tags=shown_tags(store, snapshots),
            freshness=_freshness(store),
        )

    def _delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with suppress(StorageError):
                self._directory.delete(path)


def _metrics(store: FileStore, entry: ManifestEntry) -> dict[str, list[dict[str, Any]]]:
    """Return the statistics of a file's columns, of the types with which it was written.

    Of a column that was added after the file nothing is said.
    """
    file = entry.file
    if not is_ours(file):
        return {}
    stored = store.version(file.schema_id)
    current = {each.id for each in store.schema.fields}
    fields = [each for each in stored.fields if each.id in current]
    return column_metrics(fields, file_stats(file, stored, stored))


class _Partitions:
    """Partitions as records of a manifest, each decoded once."""

    def __init__(self, store: FileStore) -> None:
        self._schema = store.schema
        self._codec = PartitionCodec(store.schema)
        self._records: dict[bytes, Mapping[str, object]] = {}

    def record(self, entry: ManifestEntry) -> Mapping[str, object]:
        known = self._records.get(entry.partition)
        if known is None:
            known = partition_record(self._schema, self._codec.decode(entry.partition))
            self._records[entry.partition] = known
        return known


def waits_for_merges(store: FileStore) -> bool:
    """Return whether a view shows only those snapshots of a table whose rows have been merged by compactions."""
    return isinstance(store.kind, KeyValueTable) and store.kind.combines


def _freshness(store: FileStore) -> str:
    return MERGED_SNAPSHOTS if waits_for_merges(store) else EVERY_SNAPSHOT


def _since(store: FileStore, shown_id: int, snapshot: Snapshot) -> list[Snapshot] | None:
    """Return the snapshots after the one that the view shows, up to this one; None if some have expired."""
    if snapshot.id - shown_id > _DELTAS_MAX:
        return None
    try:
        return [*store.snapshots.load_all(range(shown_id + 1, snapshot.id)), snapshot]
    except SnapshotExpiredError:
        return None


def identity_of(snapshot: Snapshot) -> str:
    """Return text that tells this snapshot from another one with its id."""
    return snapshot.uuid or f"{snapshot.commit_user} {snapshot.commit_identifier} {snapshot.time_millis}"


def shown_tags(store: FileStore, snapshots: Sequence[ShownSnapshot]) -> dict[str, int]:
    """Return the snapshot ids of the table's tags that the view shows."""
    ids = {each.id for each in snapshots}
    return {
        tag.name: tag.snapshot.id
        for tag in store.tags.load_all()
        if tag.snapshot.id in ids and tag.name != MAIN and not tag.name.startswith((WORK_TAG_PREFIX, VIEW_TAG_PREFIX))
    }


def _unexpired(store: FileStore, snapshots: Sequence[ShownSnapshot]) -> list[ShownSnapshot]:
    """Return the snapshots that are there, or that a tag keeps.

    An expiry drops the others from the newest metadata, which may not be the one that this is built upon.
    """
    earliest_id = store.snapshots.earliest_id() or 0
    if all(each.id >= earliest_id for each in snapshots):
        return list(snapshots)
    tagged = {tag.snapshot.id for tag in store.tags.load_all()}
    return [each for each in snapshots if each.id >= earliest_id or each.id in tagged]


def with_schema(metadata: ViewMetadata, store: FileStore) -> ViewMetadata:
    """Return the metadata with the store's schema as the current one."""
    schema = store.schema
    if schema.id <= metadata.schema_id and schema.id in metadata.schemas:
        return metadata
    return replace(
        metadata,
        schema_id=max(schema.id, metadata.schema_id),
        schemas={**metadata.schemas, schema.id: iceberg_schema(schema)},
    )


def _summary(snapshot: Snapshot, shown_id: int | None, change: ContentChange, content: ViewContent) -> dict[str, str]:
    hides = any(each is not None for each in change.hidden.values())
    # Snapshots between the one shown before and a compaction may have changed rows.
    if snapshot.commit_kind is CommitKind.COMPACT and shown_id == snapshot.id - 1:
        operation = "replace"
    elif snapshot.commit_kind is CommitKind.OVERWRITE or change.removed or hides:
        operation = "overwrite"
    else:
        operation = "append"
    data, hiding = content.data_files().values(), content.delete_files().values()
    return {
        "operation": operation,
        "added-data-files": str(len(change.added)),
        "added-records": str(sum(each.row_count for each in change.added)),
        "deleted-data-files": str(len(change.removed)),
        "total-data-files": str(len(data)),
        "total-records": str(sum(each.row_count for each in data)),
        "total-files-size": str(sum(each.size_bytes for each in data)),
        "total-delete-files": str(len(hiding)),
        "total-position-deletes": str(sum(each.row_count for each in hiding)),
        "total-equality-deletes": "0",
    }
