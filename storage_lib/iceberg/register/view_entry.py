"""The entry of a table's view in a catalog of others: brought up to date after the view, and removed with it.

The catalog is asked last, so a commit stands whatever it answers. Whether the table still wants the entry is checked
before metadata is named in it, and again afterwards: other processes drop, rename and alter the table at the same time
(docs/decisions/0110).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from storage_lib.built_once import built_once
from storage_lib.errors import NotFoundError, UnavailableError
from storage_lib.file_store.store import FileStore
from storage_lib.iceberg.encode.table_metadata import ViewMetadata
from storage_lib.iceberg.register.registration import PublishedView, Registration
from storage_lib.iceberg.register.registrations import registration_of
from storage_lib.iceberg.register.view_choice import ViewChoice
from storage_lib.io.after_commit import after_commit
from storage_lib.io.environment import Environment
from storage_lib.io.file_io_factory import absolute_place

_LOGGER = logging.getLogger(__name__)
_PATIENCE_SECONDS, _PAUSE_SECONDS = 5, 60
"""A catalog of others that does not answer for so long is not asked again by the commits of the next minute."""


class ViewFiles(Protocol):
    """The view's files, as far as its entry needs them."""

    def newest(self) -> ViewMetadata | None:
        """Return the newest metadata; None if there is none."""

    def newest_document(self) -> tuple[ViewMetadata, str, bytes] | None:
        """Return the newest metadata with its path and its bytes; None if there is none."""

    def registered(self) -> tuple[int, str] | None:
        """Return what ``note_registered`` noted."""

    def note_registered(self, number: int, entry: str) -> None:
        """Note that ``entry`` in the catalog shows snapshot ``number``."""

    def forget_registered(self) -> None:
        """Delete that note."""

    def write_for_catalog(self, location: str, name: str, data: bytes) -> str:
        """Write metadata that belongs to the catalog; return its path."""


class ViewEntry:
    """The entry of one table. Threads may share it.

    Does nothing for a view without an entry, or if the connection names no catalog: processes that know one keep the
    entry up to date.
    """

    def __init__(
        self,
        store: FileStore,
        files: ViewFiles,
        *,
        table: str,
        location: str,
        choice: ViewChoice,
        environment: Environment,
        connection: Mapping[str, str],
    ) -> None:
        """``table`` is ``database.table``, ``location`` its directory; ``connection`` are the catalog's options."""
        self._store = store
        self._files = files
        self._table = table
        self._location = location
        self._choice = choice
        self._clock = environment.clock
        self._new_name = environment.new_name
        self._connection = connection
        self._next_try = 0.0
        """When a commit asks the catalog again, by the monotonic clock."""

    def follow(self) -> None:
        """Bring the entry up to date. Raises ``StorageError``."""
        if self._registration is None:
            return
        shown: int | None = None

        def newest() -> PublishedView | None:
            nonlocal shown
            found = self._files.newest_document() if self._is_wanted() else None
            if found is None:
                return None
            metadata, path, data = found
            shown = metadata.snapshot_id
            return PublishedView(shown, absolute_place(path), data, self._store.of_newest_schema().schema)

        self._registration.follow(newest, self._write_copy)
        if shown is None:
            return
        if not self._is_wanted():
            # Others may have removed the entry before this process created it again.
            self.remove()
            return
        newer = self._files.newest()
        if newer is not None and newer.snapshot_id == shown:
            # Who publishes a newer one has noted that, or will.
            self.remove_former()
            self._files.note_registered(shown, self._choice.entry_text)

    def follow_in_time(self) -> None:
        """As ``follow``, unless the catalog has let this process wait in vain a short time ago."""
        if self._clock.monotonic() < self._next_try:
            return
        started = self._clock.monotonic()
        try:
            self.follow()
        except UnavailableError:
            ended = self._clock.monotonic()
            if ended - started > _PATIENCE_SECONDS:
                self._next_try = ended + _PAUSE_SECONDS
            raise

    def shown(self) -> int | None:
        """Return the newest snapshot that the entry is known to show; None if it is not known to show one."""
        noted = self._files.registered()
        return noted[0] if noted is not None and noted[1] == self._choice.entry_text else None

    def former(self) -> str | None:
        """Return catalog and name of an entry that is noted, and that the table no longer wants; None if there is none.

        A process that crashed while it altered the table has left it.
        """
        choice = self._former()
        return None if choice is None else f"{choice.storage} {choice.entry}"

    def remove_former(self) -> None:
        """Remove the entry of ``former``; a failure is only logged."""
        choice = self._former()
        if choice is None:
            return
        with after_commit(f"table {self._table}: removing its former entry {choice.entry} from a {choice.storage}"):
            self._files.forget_registered()
            registration = self._registration_of(choice)
            if registration is None:
                _LOGGER.warning(
                    "table %s: its former entry %s stays in a %s, because this connection does not name that catalog; "
                    "drop the entry there",
                    self._table,
                    choice.entry,
                    choice.storage,
                )
            else:
                registration.drop()

    def _former(self) -> ViewChoice | None:
        noted = self._files.registered()
        choice = None if noted is None else self._choice.with_entry(noted[1])
        return None if choice is None or choice.registered_as == self._choice.registered_as else choice

    def remove(self) -> None:
        """Remove the entry; a failure is only logged."""
        with after_commit(f"table {self._table}: removing its entry from a catalog of others"):
            # First, so that nobody takes the table for registered. The note of another entry is not this one's.
            noted = self._files.registered()
            if noted is not None and self._choice.with_entry(noted[1]) in (None, self._choice):
                self._files.forget_registered()
            if self._registration is not None:
                self._registration.drop()

    @built_once
    def _registration(self) -> Registration | None:
        """How the entry is kept. Built for the first commit: readers need no package of a catalog's client."""
        return self._registration_of(self._choice)

    def _registration_of(self, choice: ViewChoice) -> Registration | None:
        return registration_of(choice, self._connection, table=self._table, location=self._location, clock=self._clock)

    def _is_wanted(self) -> bool:
        """Return whether the table is still there, and its newest schema asks for this entry."""
        try:
            self._store.check_still_there()
        except NotFoundError:
            return False
        newest = ViewChoice.of(self._table, self._store.of_newest_schema().schema)
        return newest.registered_as == self._choice.registered_as

    def _write_copy(self, data: bytes) -> str:
        path = self._files.write_for_catalog(self._location, f"00000-{self._new_name()}", data)
        return absolute_place(path)
