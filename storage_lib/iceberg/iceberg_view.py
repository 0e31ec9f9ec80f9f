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
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from storage_lib.errors import CorruptFileError
from storage_lib.file_store.snapshot.snapshot import Snapshot
from storage_lib.iceberg.delta.delta_log import DeltaLog, Shown
from storage_lib.iceberg.delta.delta_view import shown_to_delta
from storage_lib.iceberg.encode.iceberg_manifest import ListedFile
from storage_lib.iceberg.encode.table_metadata import ViewMetadata, shows_columns_of, uuid_of_view
from storage_lib.iceberg.publish.view_catch_up import ViewCatchUp
from storage_lib.iceberg.publish.view_content import ViewContent, ViewContents
from storage_lib.iceberg.publish.view_directory import ViewDirectory
from storage_lib.iceberg.publish.view_expiry import ViewExpiry
from storage_lib.iceberg.publish.view_placement import view_root
from storage_lib.iceberg.publish.view_publisher import ViewPublisher, shown_tags, waits_for_merges, with_schema
from storage_lib.iceberg.register.view_choice import ViewChoice
from storage_lib.iceberg.register.view_entry import ViewEntry
from storage_lib.io.after_commit import after_commit
from storage_lib.io.file_io_factory import absolute_place, is_same_place
from storage_lib.schema.options.table_options import IcebergStorage, TableOptions

if TYPE_CHECKING:
    from pyroaring import BitMap64

    from storage_lib.file_store.store import FileStore
    from storage_lib.io.environment import Environment
    from storage_lib.io.file_io import FileStatus

_LOGGER = logging.getLogger(__name__)


class IcebergView:
    """A ``SnapshotView``. Threads may share it."""

    def __init__(
        self,
        store: FileStore,
        *,
        table: str,
        table_uuid: str,
        location: str,
        choice: ViewChoice,
        environment: Environment,
        connection: Mapping[str, str],
    ) -> None:
        """``table`` is ``database.table``, ``location`` its directory; ``connection`` are the catalog's options."""
        self._store = store
        self._table = table
        self._location = location
        self.choice = choice
        self.directory = ViewDirectory(
            environment.file_io,
            view_root(choice.storage, location),
            # A Hive metastore names a file of the view, and a process that does not know its address may come next.
            keeps_registered=choice.storage is IcebergStorage.HIVE_CATALOG,
        )
        self._successor: IcebergView | None = None
        self.delta = DeltaLog(environment.file_io, location, table)
        self.entry = ViewEntry(
            store,
            self.directory,
            table=table,
            location=location,
            choice=choice,
            environment=environment,
            connection=connection,
        )
        self._contents = ViewContents(self.directory, environment.new_name)
        self._publisher = ViewPublisher(
            self.directory,
            self._contents,
            table=table,
            table_uuid=uuid_of_view(table_uuid),
            location=location,
            version=choice.version,
            stores=environment.stores,
        )
        self._missing = ViewCatchUp(
            store,
            self.directory,
            self._contents,
            self._publisher,
            table=table,
            location=location,
            version=choice.version,
            clock=environment.clock,
        )
        self._expiry = ViewExpiry(store, self.directory, self._contents, table=table, clock=environment.clock)

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot and those before it; see ``SnapshotView``."""
        with after_commit(f"table {self._table}: publishing snapshot {snapshot.id} in the Iceberg view"):
            view = self._wanted()
            if view is not None:
                view.follow()

    def follow(self) -> None:
        """Show the newest snapshot in this view, in the log for readers of Delta, and in a catalog of others.

        A catalog that has let this process wait in vain a short time ago is not asked. Raises ``StorageError``.
        """
        self.catch_up()
        self._follow_in_delta()
        self.entry.follow_in_time()

    def shown(self) -> int | None:
        """Return the newest snapshot that the view shows, 0 for one of an empty table; None without a view.

        In a catalog of others, the newest one that this table's processes have registered there; 0 if none.
        """
        newest = self._newest()
        if newest is None:
            return None
        return self.entry.shown() or 0 if self.choice.storage.is_registered else newest.snapshot_id

    def waiting(self) -> int:
        """Return how many snapshots after the newest one in the view wait for a compaction; see ``SnapshotView``."""
        return self._missing.waiting()

    def problem(self) -> str | None:
        """Return what is wrong apart from missing snapshots; see ``SnapshotView``."""
        newest = self._newest()
        if newest is None:
            # Otherwise all snapshots are missing.
            return "it does not exist" if self._store.snapshots.latest_id() is None else None
        if not shows_columns_of(newest, self._store.of_newest_schema().schema):
            return "it shows the columns from before the last ALTER TABLE"
        if not self.directory.has_hint():
            return f"its {self.directory.hint_path}, by which readers find its metadata, is missing or damaged"
        former = self.entry.former()
        return None if former is None else f"its former entry is still there: {former}"

    def _newest(self) -> ViewMetadata | None:
        """Return the newest metadata; None if it is of another place or version, and so of another view."""
        newest = self.directory.newest()
        is_ours = newest is not None and (newest.location, newest.version) == (self._location, self.choice.version)
        return newest if is_ours else None

    def document(self) -> tuple[str, bytes] | None:
        """Return the absolute path and the content of the newest metadata; None if there is no view.

        A view of another place, from which the table has moved, is none.
        """
        found = self.directory.newest_document()
        if found is None or not is_same_place(found[0].location, self._location):
            return None
        return absolute_place(found[1]), found[2]

    def catch_up(self) -> int | None:
        """Publish the snapshots that are missing, unless the newest schema asks for another view, or none.

        Returns and raises as ``ViewCatchUp.catch_up``.
        """
        return self._missing.catch_up() if self.is_wanted() else None

    def refresh(self) -> None:
        """Catch up, and show the table's newest schema and tags.

        Raises as ``catch_up``, and ``NotFoundError`` if the table was dropped.
        """
        self._store.check_still_there()
        view = self._wanted()
        if view is not None:
            view.follow_schema()

    def follow_schema(self) -> None:
        """As ``follow``, with the newest schema and tags; a catalog of others is asked in any case."""
        self.catch_up()
        newest = self.directory.newest()
        if newest is None:
            return
        self.directory.repair_hint(newest.snapshot_id)
        updated = with_schema(newest, self._store.of_newest_schema())
        updated = replace(updated, tags=shown_tags(self._store, updated.snapshots))
        if updated != newest:
            self.directory.replace(updated, self._store.of_newest_schema().schema)
        self._follow_in_delta(ends=True)
        self.entry.remove_former()
        self.entry.follow()

    def hold(self, first_retained: int) -> None:
        """Keep the snapshot that the view shows, if rows of newer ones have to be merged; see ``SnapshotView``."""
        newest = self.directory.newest() if waits_for_merges(self._store) else None
        if newest is None or newest.location != self._location:
            return
        self._expiry.hold(newest, first_retained)
        released = self._expiry.release(newest)
        if released:
            self.drop_expired()
        self._expiry.delete_released(released)

    def drop_expired(self) -> None:
        """Drop expired snapshots from the newest metadata, then the files of the view that only they need."""
        earliest_id = self._store.snapshots.earliest_id() or 0
        newest = self.directory.newest()
        if newest is not None and newest.snapshot_id < earliest_id:
            self.catch_up()
            newest = self.directory.newest()
        if newest is None:
            return
        # It may be at a snapshot whose files are deleted now.
        self._follow_in_delta(ends=True)
        # An expiry may have crashed before it held the snapshot.
        self._expiry.hold(newest, earliest_id)
        expired = self._expiry.expired(newest, earliest_id)
        if expired.is_current_gone:
            _LOGGER.warning(
                "another engine expired the snapshot that the Iceberg view of table %s shows: the view begins again "
                "with the next one that it can show",
                self._table,
            )
            self.drop()
        elif expired.dropped:
            self._expiry.shorten(expired)
            with after_commit(f"table {self._table}: dropping expired snapshots from its entry in a catalog of others"):
                self.entry.follow()
            self._expiry.delete_files(expired, earliest_id)

    def orphans(self) -> Iterator[tuple[str, FileStatus]]:
        """Yield the view's files that none of its snapshots needs; see ``SnapshotView``."""
        return self._expiry.orphans()

    def delete(self, path: str) -> None:
        """Delete a file that ``orphans`` yielded."""
        self.directory.delete(path)

    def drop(self) -> None:
        """Delete the view: its readers get an error instead of rows that no longer change."""
        self.entry.remove()
        self.delta.drop()
        self.directory.delete_all()
        self._expiry.delete_released(self._expiry.release(None))

    def is_wanted(self) -> bool:
        """Return whether the newest schema still asks for this view: another process may have altered the table."""
        newest = self._store.of_newest_schema().schema
        return newest is self._store.schema or ViewChoice.of(self._table, newest) == self.choice

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

    def _wanted(self) -> IcebergView | None:
        """Return the view that the newest schema asks for, which may be elsewhere or of another version.

        A process that opened the table before the change may keep writing for as long as it runs.
        """
        if self.is_wanted():
            return self
        if self._successor is None or not self._successor.is_wanted():
            wanted = self._store.newest_view()
            self._successor = wanted if isinstance(wanted, IcebergView) else None
        return self._successor
