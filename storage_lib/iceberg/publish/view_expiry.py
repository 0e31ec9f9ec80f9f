"""Which snapshots and files of a view end: those of snapshots that the table no longer has, and orphans.

The expiry first holds the snapshot that the view shows. Then the metadata is written without the expired snapshots, and
the files that only they need are deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from storage_lib.errors import CorruptFileError, NotFoundError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.encode.table_metadata import ShownSnapshot, ViewMetadata
from storage_lib.iceberg.publish.view_content import ViewContents
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.iceberg.publish.view_publisher import shown_tags, waits_for_merges
from storage_lib.iceberg.publish.view_tags import delete_released, hold, release
from storage_lib.io.environment import Clock
from storage_lib.io.file_io import FileStatus

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Expired:
    """The newest metadata of a view, and which of its snapshots the table still has."""

    metadata: ViewMetadata
    is_kept: Sequence[bool]

    @property
    def is_current_gone(self) -> bool:
        """Whether the snapshot that the view shows has expired."""
        return bool(self.is_kept) and not self.is_kept[-1]

    @property
    def kept(self) -> list[ShownSnapshot]:
        """The snapshots that stay."""
        return [each for each, stays in zip(self.metadata.snapshots, self.is_kept, strict=True) if stays]

    @property
    def dropped(self) -> list[ShownSnapshot]:
        """The snapshots that leave the view."""
        return [each for each, stays in zip(self.metadata.snapshots, self.is_kept, strict=True) if not stays]

    @property
    def neighbours(self) -> list[ShownSnapshot]:
        """The kept snapshots next to dropped ones: consecutive snapshots need a file, so they need it as well."""
        return [
            each
            for place, each in enumerate(self.metadata.snapshots)
            if self.is_kept[place] and not all(self.is_kept[max(0, place - 1) : place + 2])
        ]


class ViewExpiry:
    """Deletes what ends of the view of one table. Thread-safe."""

    def __init__(
        self, store: FileStore, directory: ViewDirectory, contents: ViewContents, *, table: str, clock: Clock
    ) -> None:
        self._store = store
        self._directory = directory
        self._contents = contents
        self._table = table
        self._clock = clock

    def hold(self, shown: ViewMetadata, first_retained: int) -> None:
        """Tag the snapshot that the view shows if an expiry of those below ``first_retained`` would delete its files.

        Only if rows of newer ones have to be merged: then the view stays at it.
        """
        if waits_for_merges(self._store):
            hold(self._store, shown, first_retained=first_retained, now_millis=self._clock.now_millis())

    def release(self, shown: ViewMetadata | None) -> list[Snapshot]:
        """Delete the tags of snapshots that the view showed before; see ``view_tags.release``. None: it shows none."""
        if not waits_for_merges(self._store):
            return []
        return release(self._store, shown, now_millis=self._clock.now_millis())

    def delete_released(self, released: list[Snapshot]) -> None:
        """Delete the table's files that only the deleted tags of these snapshots kept."""
        if released:
            delete_released(self._store, released)

    def expired(self, metadata: ViewMetadata, earliest_id: int) -> Expired:
        """Return which snapshots of the newest metadata have expired, and have no tag."""
        tagged = {tag.snapshot.id for tag in self._store.tags.load_all()}
        return Expired(metadata, [each.id >= earliest_id or each.id in tagged for each in metadata.snapshots])

    def shorten(self, expired: Expired) -> None:
        """Write the newest metadata again, without the expired snapshots."""
        kept = expired.kept
        # Metadata that another process publishes now, upon the former, names them once more; the next expiry drops
        # them again.
        shorter = replace(expired.metadata, snapshots=tuple(kept), tags=shown_tags(self._store, kept))
        self._directory.replace(shorter, self._store.schema)

    def delete_files(self, expired: Expired, earliest_id: int) -> None:
        """Delete older metadata, and the files that only the expired snapshots need."""
        for number in self._directory.numbers():
            if number < min(earliest_id, expired.metadata.snapshot_id):
                self._directory.delete(self._directory.metadata_path(number))
        for path in sorted(self._own_paths(expired.dropped) - self._own_paths(expired.neighbours)):
            self._directory.delete(path)

    def orphans(self) -> Iterator[tuple[str, FileStatus]]:
        """Yield the view's files that none of its snapshots needs, of any age."""
        files = list(self._directory.files())
        newest = self._directory.newest()
        if newest is None:
            return
        try:
            needed = self._own_paths(newest.snapshots, strict=True)
        except (NotFoundError, CorruptFileError) as error:
            # Without its manifests it is not known which vectors it needs.
            _LOGGER.warning("the Iceberg view of table %s is not searched for orphan files: %s", self._table, error)
            return
        for path, status in files:
            # Metadata that was not deleted in its time goes with its snapshot.
            if path not in needed and not self._directory.is_metadata(path) and not self._directory.is_hint(path):
                yield path, status

    def _own_paths(self, snapshots: Sequence[ShownSnapshot], *, strict: bool = False) -> set[str]:
        """Return the paths of manifest lists, manifests and vectors; without ``strict``, of those that still exist."""
        paths = set()
        for each in snapshots:
            paths.add(each.manifest_list)
            try:
                paths |= self._contents.read(each.manifest_list).own_paths()
            except NotFoundError:
                if strict:
                    raise
        return paths
