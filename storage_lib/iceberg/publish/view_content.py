"""Content of one Iceberg snapshot: its manifests with the data files and delete files that they list.

The next content carries over the manifests that a change leaves alone. Those that list a removed file are written
again without it; many small ones are merged into one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from storage_lib.iceberg.encode.iceberg_manifest import (
    Content,
    ListedFile,
    ManifestRecord,
    decode_manifest,
    decode_manifest_list,
    encode_manifest,
    encode_manifest_list,
)
from storage_lib.iceberg.encode.partition_summary import partition_summaries
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.schema.options.table_options import IcebergVersion
from storage_lib.schema.table_schema import TableSchema

_MANIFESTS_MAX = 20
"""Manifests of one kind above which they are merged into one."""
_CACHED_FILES_MAX = 200_000


@dataclass(frozen=True, slots=True)
class _Manifest:
    record: ManifestRecord
    files: tuple[ListedFile, ...]


@dataclass(frozen=True, slots=True)
class ViewContent:
    """The manifests of a snapshot; empty for a table without one."""

    manifests: tuple[_Manifest, ...] = ()

    def data_files(self) -> dict[str, ListedFile]:
        """Return the data files by path."""
        return {each.path: each for each in self._of(Content.DATA)}

    def delete_files(self) -> dict[str, ListedFile]:
        """Return the delete files by the path of the data file whose rows they hide."""
        return {each.data_file: each for each in self._of(Content.DELETES) if each.data_file is not None}

    def own_paths(self) -> set[str]:
        """Return the paths of the view's own files: manifests and delete files."""
        return {each.record.path for each in self.manifests} | {each.path for each in self._of(Content.DELETES)}

    def _of(self, content: Content) -> list[ListedFile]:
        return [file for each in self.manifests if each.record.content is content for file in each.files]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentChange:
    """Changes of a snapshot; ``hidden`` has the new delete file of each data file by path, None if it is removed."""

    sequence: int
    first_row_id: int | None
    added: Sequence[ListedFile]
    removed: Collection[str]
    hidden: Mapping[str, ListedFile | None]

    def removes(self, file: ListedFile) -> bool:
        """Return whether a data file leaves the view."""
        return file.path in self.removed

    def replaces(self, delete_file: ListedFile) -> bool:
        """Return whether a delete file leaves the view, with its data file or for another one."""
        return delete_file.data_file in self.removed or delete_file.data_file in self.hidden


class ViewContents:
    """Reads and encodes contents. Manifests are immutable, so decoded ones are cached. Thread-safe."""

    def __init__(self, directory: ViewDirectory, new_name: Callable[[], str]) -> None:
        self._directory = directory
        self.new_name = new_name
        self._cache: OrderedDict[str, _Manifest] = OrderedDict()
        self._cached = 0
        self._lock = threading.Lock()

    def read(self, manifest_list: str) -> ViewContent:
        """Return the content that a manifest list names. Raises ``NotFoundError`` if a file is missing."""
        records = decode_manifest_list(self._directory.read(manifest_list), manifest_list)
        return ViewContent(tuple(self._manifest(each) for each in records))

    def encode(
        self,
        before: ViewContent,
        change: ContentChange,
        *,
        schema: TableSchema,
        iceberg_schema: Mapping[str, Any],
        version: IcebergVersion,
        parent: int | None,
        written: dict[str, bytes],
    ) -> tuple[str, ViewContent]:
        """Encode the content after a change; return the path of its manifest list. ``written`` gets the new files."""

        def encoded(content: Content, existing: Sequence[ListedFile], added: Sequence[ListedFile]) -> _Manifest:
            data = encode_manifest(
                existing, added, content=content, schema=schema, iceberg_schema=iceberg_schema, version=version
            )
            path = self._directory.path(f"{self.new_name()}-m{len(written)}.avro")
            written[path] = data
            record = _record(path, len(data), content, existing, added, change, schema)
            manifest = _Manifest(record, (*existing, *added))
            self._remember(manifest)
            return manifest

        hiding = [each for each in change.hidden.values() if each is not None]
        first = change.first_row_id
        numbered = change.added if first is None else _with_row_ids(change.added, first)
        manifests: list[_Manifest] = []
        for content, added, is_gone in (
            (Content.DATA, numbered, change.removes),
            (Content.DELETES, hiding, change.replaces),
        ):
            mine = [each for each in before.manifests if each.record.content is content]
            whole = [each for each in mine if not any(map(is_gone, each.files))]
            cut = [each for each in mine if any(map(is_gone, each.files))]
            if len(whole) + (1 if cut else 0) > _MANIFESTS_MAX:
                whole, cut = [], mine
            left = [file for each in cut for file in each.files if not is_gone(file)]
            manifests += whole
            if content is Content.DELETES and left and added:
                manifests.append(encoded(content, left, added))
                continue
            # Row ids of added data files count from their manifest's first one.
            if left:
                manifests.append(encoded(content, left, ()))
            if added:
                manifests.append(encoded(content, (), added))
        records = [each.record for each in manifests]
        data = encode_manifest_list(records, sequence=change.sequence, parent=parent, version=version)
        path = self._directory.path(f"snap-{change.sequence}-{self.new_name()}.avro")
        written[path] = data
        return path, ViewContent(tuple(manifests))

    def _manifest(self, record: ManifestRecord) -> _Manifest:
        with self._lock:
            known = self._cache.get(record.path)
            if known is not None:
                self._cache.move_to_end(record.path)
                return _Manifest(record, known.files)
        found = _Manifest(record, decode_manifest(self._directory.read(record.path), record.path, record))
        self._remember(found)
        return found

    def _remember(self, manifest: _Manifest) -> None:
        with self._lock:
            if manifest.record.path in self._cache:
                return
            self._cache[manifest.record.path] = manifest
            self._cached += len(manifest.files)
            while self._cached > _CACHED_FILES_MAX and len(self._cache) > 1:
                _, dropped = self._cache.popitem(last=False)
                self._cached -= len(dropped.files)


def _with_row_ids(files: Sequence[ListedFile], first: int) -> list[ListedFile]:
    """Return added files with the row ids that readers derive from the manifest's first one."""
    numbered = []
    for file in files:
        numbered.append(replace(file, first_row_id=first))
        first += file.row_count
    return numbered


def _record(
    path: str,
    size: int,
    content: Content,
    existing: Sequence[ListedFile],
    added: Sequence[ListedFile],
    change: ContentChange,
    schema: TableSchema,
) -> ManifestRecord:
    files = (*existing, *added)
    return ManifestRecord(
        path=path,
        size_bytes=size,
        content=content,
        sequence=change.sequence,
        min_sequence=min(file.sequence for file in files),
        added_count=len(added),
        added_rows=sum(file.row_count for file in added),
        existing_count=len(existing),
        existing_rows=sum(file.row_count for file in existing),
        first_row_id=change.first_row_id if content is Content.DATA else None,
        partitions=partition_summaries(schema, [file.partition for file in files]),
    )
