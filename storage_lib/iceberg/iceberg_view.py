"""The Iceberg view of a table (https://iceberg.apache.org/spec/): the table's own files with other metadata.

    snapshot-<n> created: the commit ─▶ masks ─▶ manifests ─▶ v<n>.metadata.json, created if absent ─▶ version hint

A reader of Iceberg sees exactly the rows of one of the table's snapshots. The view is written after the snapshot, by
the process that committed it, before its verb returns. If that process crashes or fails in between, or is slower than
the next one, whoever commits next publishes the missing snapshots in their order. So the view may be behind, and says
how far (``shown``), but it never shows a snapshot that the table does not have.

If rows are combined from several versions while they are read (partial-update, aggregation), the view leaves out a
snapshot until a compaction has written each row that it combines (``waiting``), and stays at the one before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.built_once import built_once
from storage_lib.errors import (
    CorruptFileError,
    InvalidInputError,
    NotFoundError,
    SnapshotExpiredError,
    UnavailableError,
)
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.iceberg.delta.delta_log import DeltaLog, Shown
from storage_lib.iceberg.delta.delta_view import shown_to_delta
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.iceberg.encode.table_metadata import ShownSnapshot, ViewMetadata, uuid_of_view
from storage_lib.iceberg.publish.view_content import ViewContent, ViewContents
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.iceberg.publish.view_placement import view_root
from storage_lib.iceberg.publish.view_publisher import (
    ViewPublisher,
    identity_of,
    shown_tags,
    waits_for_merges,
    with_schema,
)
from storage_lib.iceberg.publish.view_tags import delete_released, hold, release
from storage_lib.iceberg.register.registration import EntryName, PublishedView, Registration
from storage_lib.iceberg.register.registrations import entry_of, registration_of
from storage_lib.io.after_commit import after_commit
from storage_lib.io.file_io_factory import absolute_place, is_same_place
from storage_lib.schema.options.table_options import IcebergStorage, IcebergVersion, TableOptions

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from storage_lib.file_store.store import FileStore
    from storage_lib.io.environment import Environment
    from storage_lib.io.file_io import FileStatus

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 100
_PATIENCE_SECONDS, _PAUSE_SECONDS = 5, 60
"""A catalog of others that does not answer for so long is not asked again by the commits of the next minute."""


class IcebergView:
    """A ``SnapshotView``. Threads may share it."""

    def __init__(
        self,
        store: FileStore,
        *,
        table: str,
        table_uuid: str,
        location: str,
        storage: IcebergStorage,
        version: IcebergVersion,
        entry: EntryName,
        environment: Environment,
        connection: Mapping[str, str],
    ) -> None:
        """``table`` is ``database.table``, ``location`` its directory; ``connection`` are the catalog's options.

        ``entry`` is the name in the catalog of others that ``storage`` may mean.
        """
        self._store = store
        self._table = table
        self._storage = storage
        self._version = version
        self._clock = environment.clock
        self._location = location
        self._entry = entry
        self.directory = ViewDirectory(
            environment.file_io,
            view_root(storage, location),
            # A Hive metastore names a file of the view, and a process that does not know its address may come next.
            keeps_registered=storage is IcebergStorage.HIVE_CATALOG,
        )
        self._new_name = environment.new_name
        self._connection = connection
        self._successor: IcebergView | None = None
        self._next_try = 0.0
        """When a commit tries the catalog of others again, by the monotonic clock."""
        self.delta = DeltaLog(environment.file_io, location, table)
        self._contents = ViewContents(self.directory, environment.new_name)
        self._publisher = ViewPublisher(
            self.directory,
            self._contents,
            table=table,
            table_uuid=uuid_of_view(table_uuid),
            location=location,
            version=version,
            stores=environment.stores,
        )

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot and those before it; see ``SnapshotView``."""
        with after_commit(f"table {self._table}: publishing snapshot {snapshot.id} in the Iceberg view"):
            view = self._wanted()
            if view is not None:
                view.catch_up()
                view._follow_in_delta()  # noqa: SLF001
                view._register_in_time()  # noqa: SLF001

    def shown(self) -> int | None:
        """Return the newest snapshot that the view shows, 0 for one of an empty table; None without a view.

        In a catalog of others, the newest one that this table's processes have registered there; 0 if none.
        """
        newest = self.directory.newest()
        if newest is None or newest.location != self._location:
            return None
        return self.directory.registered() or 0 if self._storage.is_registered else newest.snapshot_id

    def waiting(self) -> int:
        """Return how many snapshots after the newest one in the view wait for a compaction; see ``SnapshotView``."""
        if not waits_for_merges(self._store):
            return 0
        newest = self.directory.newest()
        return max(0, self._waits_up_to() - (0 if newest is None else newest.snapshot_id))

    def document(self) -> tuple[str, bytes] | None:
        """Return the absolute path and the content of the newest metadata; None if there is no view.

        A view of another place, from which the table has moved, is none.
        """
        found = self.directory.newest_document()
        if found is None or not is_same_place(found[0].location, self._location):
            return None
        return absolute_place(found[1]), found[2]

    def catch_up(self) -> int | None:
        """Publish the snapshots that are missing, in their order; return the newest one that the view shows.

        Snapshots that have expired are left out, those with files that Iceberg can't show, and those whose rows have to
        be merged. A view that does not exist begins with the newest of the others. Raises ``StorageError``; what was
        published before stays.
        """
        if not self._is_wanted():
            return None
        published: ViewMetadata | None = None
        for _ in range(_ATTEMPTS):
            latest_id = self._store.snapshots.latest_id()
            if published is not None and published.snapshot_id == latest_id:
                return latest_id
            before = self._base()
            if latest_id is None:
                return self._begin_empty(before)
            if before is not None and before.snapshot_id >= latest_id:
                return before.snapshot_id
            waits_up_to = self._waits_up_to()
            if waits_up_to == latest_id:
                return None if before is None else before.snapshot_id
            for snapshot in self._missing(before, waits_up_to, latest_id):
                before, goes_on = self._next(before, snapshot, is_last=snapshot.id == latest_id)
                published = before if goes_on else None
                if not goes_on:
                    break
        message = (
            f"table {self._table}: other processes commit and publish faster than its Iceberg view is written here; "
            "the next commit continues"
        )
        raise UnavailableError(message)

    def refresh(self) -> None:
        """Catch up, and show the table's newest schema and tags.

        Raises as ``catch_up``, and ``NotFoundError`` if the table was dropped.
        """
        self._store.check_still_there()
        view = self._wanted()
        if view is not None:
            view._refresh()  # noqa: SLF001

    def _refresh(self) -> None:
        self.catch_up()
        newest = self.directory.newest()
        if newest is None:
            return
        updated = with_schema(newest, self._store.of_newest_schema())
        updated = replace(updated, tags=shown_tags(self._store, updated.snapshots))
        if updated != newest:
            self.directory.replace(updated, self._store.of_newest_schema().schema)
        self._follow_in_delta(ends=True)
        self._register()

    def hold(self, first_retained: int) -> None:
        """Keep the snapshot that the view shows, if rows of newer ones have to be merged; see ``SnapshotView``."""
        newest = self.directory.newest() if waits_for_merges(self._store) else None
        if newest is None or newest.location != self._location:
            return
        now_millis = self._clock.now_millis()
        hold(self._store, newest, first_retained=first_retained, now_millis=now_millis)
        released = release(self._store, newest, now_millis=now_millis)
        if released:
            self.drop_expired()
            delete_released(self._store, released)

    def drop_expired(self) -> None:
        """Drop expired snapshots from the newest metadata, then the files of the view that only they need."""
        earliest_id = self._store.snapshots.earliest_id() or 0
        newest = self.directory.newest()
        if newest is None:
            return
        if newest.snapshot_id < earliest_id:
            self.catch_up()
            newest = self.directory.newest()
            if newest is None:
                return
        # It may be at a snapshot whose files are deleted now.
        self._follow_in_delta(ends=True)
        if waits_for_merges(self._store):
            # An expiry may have crashed before it held the snapshot.
            hold(self._store, newest, first_retained=earliest_id, now_millis=self._clock.now_millis())
        tags = shown_tags(self._store, newest.snapshots)
        tagged = {tag.snapshot.id for tag in self._store.tags.load_all()}
        is_kept = [each.id >= earliest_id or each.id in tagged for each in newest.snapshots]
        if is_kept and not is_kept[-1]:
            _LOGGER.warning(
                "another engine expired the snapshot that the Iceberg view of table %s shows: the view begins again "
                "with the next one that it can show",
                self._table,
            )
            self.drop()
            return
        kept = [each for each, stays in zip(newest.snapshots, is_kept, strict=True) if stays]
        dropped = [each for each, stays in zip(newest.snapshots, is_kept, strict=True) if not stays]
        if dropped:
            # Metadata that another process publishes now, upon the former, names them once more; the next expiry drops
            # them again.
            self.directory.replace(replace(newest, snapshots=tuple(kept), tags=tags), self._store.schema)
            with after_commit(f"table {self._table}: dropping expired snapshots from its entry in a catalog of others"):
                self._register()
            for number in self.directory.numbers():
                if number < min(earliest_id, newest.snapshot_id):
                    self.directory.delete(self.directory.metadata_path(number))
            for path in sorted(self._own_paths(dropped) - self._own_paths(_neighbours(newest.snapshots, is_kept))):
                self.directory.delete(path)

    def orphans(self) -> Iterator[tuple[str, FileStatus]]:
        """Yield the view's files that none of its snapshots needs; see ``SnapshotView``."""
        files = list(self.directory.files())
        newest = self.directory.newest()
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
            if path not in needed and not self.directory.is_metadata(path) and not self.directory.is_hint(path):
                yield path, status

    def delete(self, path: str) -> None:
        """Delete a file that ``orphans`` yielded."""
        self.directory.delete(path)

    def drop(self) -> None:
        """Delete the view: its readers get an error instead of rows that no longer change."""
        self.unregister()
        self.delta.drop()
        self.directory.delete_all()
        if waits_for_merges(self._store):
            delete_released(self._store, release(self._store, None, now_millis=self._clock.now_millis()))

    @property
    def entry(self) -> tuple[IcebergStorage, EntryName] | None:
        """Kind of catalog and name under which the view is registered; None if it is not."""
        return (self._storage, self._entry) if self._storage.is_registered else None

    @built_once
    def _registration(self) -> Registration | None:
        """How the entry is kept. Built for the first commit: readers need no package of a catalog's client."""
        return registration_of(
            self._storage,
            self._connection,
            table=self._table,
            entry=self._entry,
            location=self._location,
            clock=self._clock,
        )

    def unregister(self) -> None:
        """Remove the table's entry from a catalog of others; a failure is only logged."""
        with after_commit(f"table {self._table}: removing its entry from a catalog of others"):
            # First, so that nobody takes it for that of an entry of another name.
            self.directory.forget_registered()
            if self._registration is not None:
                self._registration.drop()

    def _follow_in_delta(self, *, ends: bool = False) -> None:
        """Bring the log for readers of Delta up to the view, if the table has one; a failure is only logged.

        ``ends``: delete that of a table that has none any more, which the process that altered it may have left.
        """
        has_log = TableOptions.parse(self._store.of_newest_schema().schema.options).delta_enabled
        with after_commit(f"table {self._table}: writing its log for readers of Delta"):
            if has_log:
                self.delta.follow(self._shown_to_delta, self._mask)
            elif ends:
                self.delta.drop()

    def _shown_to_delta(self) -> Shown | None:
        newest = self.directory.newest()
        if newest is None or newest.location != self._location:
            return None
        content = ViewContent() if newest.current is None else self._contents.read(newest.current.manifest_list)
        return shown_to_delta(newest, content, self._store)

    def _mask(self, delete_file: ListedFile) -> BitMap64:
        mask = self._publisher.masks.of(delete_file)
        if mask is None:
            message = f"{delete_file.path}, which hides rows of {delete_file.data_file}, is missing or damaged"
            raise CorruptFileError(message)
        return mask

    def _register(self) -> None:
        """Bring the entry in a catalog of others up to date. Raises ``StorageError``.

        If this connection names no catalog, processes that have one keep the entry up to date.
        """
        if self._registration is None:
            return
        shown: int | None = None

        def newest() -> PublishedView | None:
            nonlocal shown
            found = self.directory.newest_document() if self._keeps_entry() else None
            if found is None:
                return None
            metadata, path, data = found
            shown = metadata.snapshot_id
            return PublishedView(shown, absolute_place(path), data, self._store.of_newest_schema().schema)

        self._registration.follow(newest, self._write_copy)
        if shown is None:
            return
        if not self._keeps_entry():
            # Others may have removed the entry before this process created it again.
            self.unregister()
            return
        newer = self.directory.newest()
        if newer is not None and newer.snapshot_id == shown:
            # Who publishes a newer one has noted that, or will.
            self.directory.note_registered(shown)

    def _register_in_time(self) -> None:
        """Register, unless the catalog has let this process wait in vain a short time ago. Raises as ``_register``."""
        if self._clock.monotonic() < self._next_try:
            return
        started = self._clock.monotonic()
        try:
            self._register()
        except UnavailableError:
            ended = self._clock.monotonic()
            if ended - started > _PATIENCE_SECONDS:
                self._next_try = ended + _PAUSE_SECONDS
            raise

    def _write_copy(self, data: bytes) -> str:
        path = self.directory.write_for_catalog(self._location, f"00000-{self._new_name()}", data)
        return absolute_place(path)

    def _wanted(self) -> IcebergView | None:
        """Return the view that the newest schema asks for, which may be elsewhere or of another version.

        A process that opened the table before the change may keep writing for as long as it runs.
        """
        if self._is_wanted():
            return self
        if self._successor is None or not self._successor._is_wanted():  # noqa: SLF001
            wanted = self._store.newest_view()
            self._successor = wanted if isinstance(wanted, IcebergView) else None
        return self._successor

    def _keeps_entry(self) -> bool:
        """Return whether the table is still there, and registered under this name in a catalog of this kind."""
        try:
            self._store.check_still_there()
        except NotFoundError:
            return False
        options = TableOptions.parse(self._store.of_newest_schema().schema.options)
        return (options.iceberg_storage, entry_of(self._table, options)) == (self._storage, self._entry)

    def _is_wanted(self) -> bool:
        """Return whether the newest schema still asks for this view: another process may have altered the table."""
        newest = self._store.of_newest_schema().schema
        if newest is self._store.schema:
            return True
        options = TableOptions.parse(newest.options)
        wanted = options.iceberg_storage, options.iceberg_version, entry_of(self._table, options)
        return wanted == (self._storage, self._version, self._entry)

    def _base(self) -> ViewMetadata | None:
        """Return the newest metadata upon which to build; None to begin with the newest snapshot."""
        newest = self.directory.newest()
        if newest is None:
            return None
        if (newest.location, newest.version) != (self._location, self._version):
            reason = "has moved" if newest.version is self._version else "has another format version"
            _LOGGER.info("table %s %s: its Iceberg view begins again", self._table, reason)
            return None
        if newest.snapshot_id == 0:
            return newest
        there = self._store.snapshots.load_expired(newest.snapshot_id)
        earliest_id = self._store.snapshots.earliest_id()
        if there is None and earliest_id is not None and newest.snapshot_id < earliest_id:
            return newest
        if there is not None and identity_of(there) == newest.identity:
            return newest
        _LOGGER.warning(
            "table %s was rolled back by another engine: its Iceberg view begins again with the newest snapshot",
            self._table,
        )
        self.directory.delete_above(self._store.snapshots.latest_id() or 0)
        return None

    def _begin_empty(self, before: ViewMetadata | None) -> int:
        if before is None:
            self.directory.create(self._publisher.empty(self._store, self._clock.now_millis()), self._store.schema)
        return 0

    def _waits_up_to(self) -> int:
        """Return the newest snapshot that is known to wait for a compaction, with all after the shown one; 0 if none.

        A note about a snapshot that another engine has rolled back is ignored.
        """
        noted = self.directory.waiting() if waits_for_merges(self._store) else None
        if noted is None or noted[0] > (self._store.snapshots.latest_id() or 0):
            return 0
        there = self._store.snapshots.load_expired(noted[0])
        return noted[0] if there is None or identity_of(there) == noted[1] else 0

    def _first_to_show(self, waits_up_to: int, latest_id: int) -> int:
        """Return the newest snapshot that a new view can show; the newest of all if none can be shown."""
        if waits_for_merges(self._store):
            earliest_id = self._store.snapshots.earliest_id() or latest_id
            for snapshot_id in range(latest_id, max(earliest_id - 1, waits_up_to), -1):
                try:
                    snapshot = self._store.snapshots.load(snapshot_id)
                except SnapshotExpiredError:
                    break
                if self._publisher.can_show(self._store_of(snapshot), snapshot):
                    return snapshot_id
        return latest_id

    def _missing(self, before: ViewMetadata | None, waits_up_to: int, latest_id: int) -> Iterator[Snapshot]:
        """Yield the snapshots to publish, the last one in any case."""
        if before is not None:
            first = max(before.snapshot_id, waits_up_to) + 1
        else:
            first = self._first_to_show(waits_up_to, latest_id)
        for snapshot_id in range(max(first, self._store.snapshots.earliest_id() or first), latest_id + 1):
            try:
                yield self._store.snapshots.load(snapshot_id)
            except SnapshotExpiredError:
                continue

    def _next(
        self, before: ViewMetadata | None, snapshot: Snapshot, *, is_last: bool
    ) -> tuple[ViewMetadata | None, bool]:
        """Publish one snapshot; return the newest metadata, and False to look again which snapshots are missing."""
        store = self._store_of(snapshot)
        if not self._publisher.can_show(store, snapshot):
            if is_last:
                self.directory.note_waiting(snapshot.id, identity_of(snapshot))
            return before, True
        try:
            published = self._publisher.publish(store, before, snapshot)
        except InvalidInputError as error:
            if is_last:
                raise
            _LOGGER.warning("snapshot %s is left out of the Iceberg view: %s", snapshot.id, error)
            return before, True
        except (NotFoundError, CorruptFileError) as error:
            if before is None or self._is_whole(before):
                raise
            _LOGGER.warning("the Iceberg view of table %s is damaged, and begins again: %s", self._table, error)
            return self._publisher.publish(store, None, snapshot), False
        if published is not None and waits_for_merges(store) and self._has_expired(snapshot):
            # The expiry has held the snapshot that was shown before, and newer ones that can be shown may not come.
            self.directory.withdraw(snapshot.id, 0 if before is None else before.snapshot_id)
            return None, False
        # None: another process is publishing as well.
        return published, published is not None

    def _has_expired(self, snapshot: Snapshot) -> bool:
        return snapshot.id < (self._store.snapshots.earliest_id() or 0) and not any(
            tag.snapshot.id == snapshot.id for tag in self._store.tags.load_all()
        )

    def _is_whole(self, metadata: ViewMetadata) -> bool:
        """Return whether the manifests of the newest snapshot can be read; otherwise others have deleted some."""
        try:
            if metadata.current is not None:
                self._contents.read(metadata.current.manifest_list)
        except (NotFoundError, CorruptFileError):
            return False
        return True

    def _store_of(self, snapshot: Snapshot) -> FileStore:
        if snapshot.schema_id == self._store.schema.id:
            return self._store
        return self._store.of_schema(snapshot.schema_id)

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


def _neighbours(snapshots: Sequence[ShownSnapshot], is_kept: Sequence[bool]) -> list[ShownSnapshot]:
    """Return the kept snapshots next to dropped ones: consecutive snapshots need a file, so they need it as well."""
    found = []
    for place, each in enumerate(snapshots):
        if is_kept[place] and not all(is_kept[max(0, place - 1) : place + 2]):
            found.append(each)
    return found
