"""A table's entry in an Iceberg REST catalog (``metadata.iceberg.storage=rest-catalog``), which follows the view.

    load the entry ─▶ read the view's newest metadata ─▶ commit the difference, unless the entry has changed
          └ none: register a copy of the metadata                       └ not possible: drop the entry, register

The catalog writes metadata files of its own. It is asked in this order, so the metadata is at least as new as what any
process has brought to the entry: the entry never goes back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.iceberg.encode.table_metadata import SNAPSHOT_PROPERTY
from storage_lib.iceberg.register.registration import EntryName, PublishedView, name_taken
from storage_lib.io.file_io_factory import is_same_place

with importing_for("an Iceberg REST catalog", InvalidInputError, "iceberg"):
    from pyiceberg.exceptions import (
        BadRequestError,
        CommitFailedException,
        NoSuchNamespaceError,
        NoSuchTableError,
        TableAlreadyExistsError,
    )
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil

    from storage_lib.iceberg.register.entry_changes import requirements_of, updates_of
    from storage_lib.iceberg.register.rest_client import RestClient, reporting

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 10


class RestRegistration:
    """A ``Registration`` in the catalog that ``properties`` name."""

    def __init__(self, *, table: str, entry: EntryName, location: str, properties: Mapping[str, str]) -> None:
        """``table`` is ``database.table``, for messages; ``location`` is its directory.

        ``properties`` are those of ``RestClient``.
        """
        self._table = table
        self._name = entry
        self._identifier = (entry.database, entry.table)
        self._location = location
        self._properties = properties
        self._client: RestClient | None = None

    def follow(self, newest: Callable[[], PublishedView | None], write_copy: Callable[[bytes], str]) -> None:
        """Bring the entry up to date; see ``Registration``."""
        with reporting(self._subject):
            for _ in range(_ATTEMPTS):
                entry = self._entry()
                published = newest()
                if published is None:
                    return
                if entry is None:
                    try:
                        self._register(write_copy(published.data))
                    except TableAlreadyExistsError:
                        continue
                    return
                wanted = TableMetadataUtil.parse_raw(published.data.decode())
                try:
                    if self._is_updated(entry, wanted):
                        return
                except CommitFailedException:
                    continue
                self._connected().drop_table(self._identifier)
        message = f"table {self._table}: others keep changing its entry in {self._subject}; the next commit continues"
        raise UnavailableError(message)

    def _is_updated(self, entry: Table, wanted: TableMetadata) -> bool:
        """Commit to the entry what it lacks; return False if it has to be registered again, and log why."""
        is_same = entry.metadata.table_uuid == wanted.table_uuid
        updates = updates_of(entry.metadata, wanted) if is_same else None
        if updates is not None:
            try:
                if updates:
                    self._connected().commit_table(entry, requirements_of(entry.metadata), updates)
            except BadRequestError as error:
                _LOGGER.warning("table %s: %s refused a change of its entry: %s", self._table, self._subject, error)
            else:
                return True
        elif entry.metadata.format_version == wanted.format_version:
            _LOGGER.warning("table %s: others have changed its entry in %s", self._table, self._subject)
        _LOGGER.info("table %s is registered again in %s", self._table, self._subject)
        return False

    def drop(self) -> None:
        """Remove the entry, if it is this table's; see ``Registration``."""
        with reporting(self._subject):
            if self._entry() is not None:
                self._connected().drop_table(self._identifier)

    @property
    def _subject(self) -> str:
        # Without a password, which it may have.
        scheme, separator, rest = self._properties["uri"].rpartition("://")
        return f"the Iceberg REST catalog {scheme}{separator}{rest.rpartition('@')[2]}"

    def _entry(self) -> Table | None:
        """Load the entry. Raises ``InvalidInputError`` if it is of a table elsewhere."""
        try:
            entry = self._connected().load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        is_ours = SNAPSHOT_PROPERTY in entry.metadata.properties
        if not is_ours or not is_same_place(entry.metadata.location, self._location):
            advice = ", or name another warehouse by iceberg.rest.warehouse"
            raise InvalidInputError(name_taken(self._table, self._subject, self._name, entry.metadata.location, advice))
        return entry

    def _register(self, path: str) -> None:
        self._connected().create_namespace_if_not_exists(self._identifier[:-1])
        self._connected().register_table(self._identifier, path)

    def _connected(self) -> RestClient:
        if self._client is None:
            self._client = RestClient("registered", self._properties)
        return self._client
