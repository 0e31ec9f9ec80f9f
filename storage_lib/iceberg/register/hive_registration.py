"""A table's entry in a Hive metastore (``metadata.iceberg.storage=hive-catalog``), which names the view's metadata.

    lock the entry ─▶ load it ─▶ read the view's newest metadata ─▶ name it, if the entry is still as it was loaded

The entry is that of Iceberg's own Hive catalog (apache/iceberg, ``HiveTableOperations``): parameter
``metadata_location`` is the path of the table's current metadata. That is the view's file itself, not a copy. A process
that changes an entry holds its lock, and reads the newest metadata under it; so the entry never goes back.
"""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

from storage_lib.distribution import importing_for
from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.iceberg.encode.table_metadata import SNAPSHOT_PROPERTY
from storage_lib.iceberg.register.registration import EntryName, PublishedView, name_taken
from storage_lib.io.environment import Clock
from storage_lib.io.file_io_factory import is_same_place

with importing_for("an Iceberg view in a Hive metastore", InvalidInputError, "hive"):
    from pymetastore.hive_metastore.ttypes import (
        AlreadyExistsException,
        Database,
        EnvironmentContext,
        InvalidObjectException,
        InvalidOperationException,
        NoSuchObjectException,
        SerDeInfo,
        StorageDescriptor,
        Table,
    )

    from storage_lib.hive.hive_columns import alter_entry
    from storage_lib.hive.hive_location import hive_location, place_of
    from storage_lib.hive.hive_metastore import HiveMetastore
    from storage_lib.hive.hive_types import hive_column
    from storage_lib.hive.table_lock import beat, give_back, request_lock

_LOGGER = logging.getLogger(__name__)
_ATTEMPTS = 10
_WAIT_SECONDS = 0.2
_TIMEOUT_SECONDS = 10
"""For each answer: commits wait for it."""
_NAME_LENGTH_MAX = 767
"""Of a column; longer ones are left out, which readers of Iceberg don't notice: they take columns from the metadata."""
_METADATA = "metadata_location"
_FORMER_METADATA = "previous_metadata_location"
_TYPE = "table_type"
_ICEBERG = "ICEBERG"
# What Iceberg's Hive catalog writes for a table that Hive itself does not read.
_INPUT = "org.apache.hadoop.mapred.FileInputFormat"
_OUTPUT = "org.apache.hadoop.mapred.FileOutputFormat"
_SERDE = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"


class HiveRegistration:
    """A ``Registration`` in the metastore at ``addresses``, those of option ``option``."""

    def __init__(
        self, *, table: str, entry: EntryName, location: str, addresses: str, option: str, clock: Clock
    ) -> None:
        """``table`` is ``database.table``, for messages; ``location`` is its directory."""
        self._table = table
        # Metastores store names in lower case.
        self._name = EntryName(entry.database.lower(), entry.table.lower())
        self._location = location
        self._addresses = addresses
        self._option = option
        self._clock = clock
        self._left: list[int] = []
        """Locks that could not be given back."""

    def follow(self, newest: Callable[[], PublishedView | None], write_copy: Callable[[bytes], str]) -> None:  # noqa: ARG002  this catalog writes no metadata
        """Bring the entry up to date; see ``Registration``."""
        metastore = self._metastore()
        self._reporting(metastore, lambda: self._follow(metastore, newest))

    def drop(self) -> None:
        """Remove the entry, if it is this table's; see ``Registration``."""
        metastore = self._metastore()
        self._reporting(metastore, lambda: self._under_lock(metastore, lambda _: self._drop(metastore)))

    def _metastore(self) -> HiveMetastore:
        return HiveMetastore(self._addresses, option=self._option, timeout_seconds=_TIMEOUT_SECONDS)

    def _follow(self, metastore: HiveMetastore, newest: Callable[[], PublishedView | None]) -> None:
        entry, published = self._entry(metastore), newest()
        if published is not None and (entry is None or not _shows(entry, published)):
            self._under_lock(metastore, lambda lock_id: self._bring_up(metastore, lock_id, newest))

    def _bring_up(self, metastore: HiveMetastore, lock_id: int, newest: Callable[[], PublishedView | None]) -> None:
        entry, published = self._entry(metastore), newest()
        if published is None:
            return
        if entry is None:
            self._create(metastore, published)
        elif not _shows(entry, published):
            # This process may have been suspended since it was granted the lock.
            if not beat(metastore, lock_id):
                message = (
                    f"table {self._table}: the lock of its entry in {_subject(metastore)} was lost; the next commit "
                    "continues"
                )
                raise UnavailableError(message)
            self._change(metastore, entry, published)

    def _drop(self, metastore: HiveMetastore) -> None:
        if self._entry(metastore) is None:
            return
        with suppress(NoSuchObjectException):
            metastore.tell(
                "drop an entry",
                lambda client: client.drop_table(self._name.database, self._name.table, deleteData=False),
            )

    def _entry(self, metastore: HiveMetastore) -> Any:
        """Load the entry; None if there is none. Raises ``InvalidInputError`` if it is of another table."""
        try:
            entry = metastore.ask(
                "look up an entry", lambda client: client.get_table(self._name.database, self._name.table)
            )
        except NoSuchObjectException:
            return None
        parameters = entry.parameters or {}
        is_ours = parameters.get(_TYPE, "").upper() == _ICEBERG and SNAPSHOT_PROPERTY in parameters
        # A view of Hive has no place.
        place = (entry.sd and entry.sd.location) or ""
        if not is_ours or not place or not is_same_place(place_of(place), self._location):
            raise InvalidInputError(name_taken(self._table, _subject(metastore), self._name, place or "no place", ""))
        return entry

    def _create(self, metastore: HiveMetastore, published: PublishedView) -> None:
        self._create_database(metastore)
        made = Table(
            tableName=self._name.table,
            dbName=self._name.database,
            owner=getpass.getuser(),
            createTime=published.schema.time_millis // 1000,
            lastAccessTime=0,
            retention=0,
            partitionKeys=[],
            # Not MANAGED: dropping the entry in Hive must not delete the table's files.
            tableType="EXTERNAL_TABLE",
            sd=StorageDescriptor(
                location=hive_location(self._location),
                inputFormat=_INPUT,
                outputFormat=_OUTPUT,
                serdeInfo=SerDeInfo(serializationLib=_SERDE, parameters={}),
                numBuckets=0,
                compressed=False,
                parameters={},
                bucketCols=[],
                sortCols=[],
            ),
        )
        _describe(made, published)
        metastore.tell("create an entry", lambda client: client.create_table(made))

    def _create_database(self, metastore: HiveMetastore) -> None:
        name = self._name.database
        with suppress(NoSuchObjectException):
            metastore.ask("look up a database", lambda client: client.get_database(name))
            return
        place = self._location.rpartition("/")[0]
        made = Database(name=name, description="", parameters={}, locationUri=hive_location(place))
        with suppress(AlreadyExistsException):
            metastore.tell("create a database", lambda client: client.create_database(made))

    def _change(self, metastore: HiveMetastore, entry: Any, published: PublishedView) -> None:
        """Name the metadata in the entry, which must still name what it named when it was loaded."""
        named = entry.parameters.get(_METADATA)
        if named is None or not is_same_place(named.rpartition("/")[0], published.path.rpartition("/")[0]):
            _LOGGER.warning("table %s: others have changed its entry in %s", self._table, _subject(metastore))
        former = deepcopy(entry)
        _describe(entry, published, named)
        alter_entry(lambda made: self._replace(metastore, made, named), entry, former)

    def _replace(self, metastore: HiveMetastore, entry: Any, named: str | None) -> None:
        """Alter the entry if it names ``named``: newer metastores check that (HIVE-26882), others have the lock."""
        expected = {"expected_parameter_key": _METADATA, "expected_parameter_value": named} if named else {}
        context = EnvironmentContext(properties={**expected, "DO_NOT_UPDATE_STATS": "true"})
        metastore.tell(
            "alter an entry",
            lambda client: client.alter_table_with_environment_context(
                self._name.database, self._name.table, entry, context
            ),
        )

    def _under_lock(self, metastore: HiveMetastore, act: Callable[[int], None]) -> None:
        """Run ``act`` with the id of the lock of the entry's name. Raises ``UnavailableError`` if others keep it.

        This is a function because exceptions of the metastore can't be raised through a context manager.
        """
        for left in tuple(self._left):
            give_back(metastore, left)
            with suppress(ValueError):
                self._left.remove(left)
        for _ in range(_ATTEMPTS):
            lock_id = request_lock(metastore, self._name.database, self._name.table)
            if lock_id is not None:
                break
            self._clock.sleep(_WAIT_SECONDS)
        else:
            message = (
                f"table {self._table}: others keep the lock of its entry {self._name} in {_subject(metastore)}; the "
                "next commit continues"
            )
            raise UnavailableError(message)
        try:
            act(lock_id)
        finally:
            try:
                give_back(metastore, lock_id)
            except UnavailableError as error:
                # The outcome of ``act`` matters more.
                self._left.append(lock_id)
                _LOGGER.warning(
                    "table %s: the lock of its entry is given back by the next commit: %s", self._table, error
                )

    def _reporting(self, metastore: HiveMetastore, act: Callable[[], None]) -> None:
        """Run ``act``; convert what the metastore raises if it refuses a request."""
        try:
            act()
        except (
            AlreadyExistsException,
            InvalidObjectException,
            InvalidOperationException,
            NoSuchObjectException,
        ) as error:
            message = f"table {self._table}: {_subject(metastore)} refused its entry {self._name}: {error.message}"
            raise InvalidInputError(message) from error


def _subject(metastore: HiveMetastore) -> str:
    return f"the Hive metastore {metastore.shown}"


def _describe(entry: Any, published: PublishedView, former: str | None = None) -> None:
    """Set columns and properties to those of the metadata; properties of others, who committed, end.

    Properties of a foreign commit would describe its snapshot, or let DROP TABLE delete the table's files.
    """
    entry.sd.cols = _columns(published)
    entry.parameters = {
        "EXTERNAL": "TRUE",
        _TYPE: _ICEBERG,
        _METADATA: published.path,
        SNAPSHOT_PROPERTY: str(published.snapshot_id),
        **({} if former is None else {_FORMER_METADATA: former}),
    }


def _shows(entry: Any, published: PublishedView) -> bool:
    return entry.parameters.get(_METADATA) == published.path and entry.sd.cols == _columns(published)


def _columns(published: PublishedView) -> list[Any]:
    """Return the columns as the metastore stores them: with names in lower case, each once."""
    columns: dict[str, Any] = {}
    for field in published.schema.fields:
        column = hive_column(field)
        column.name = column.name.lower()
        if len(column.name) <= _NAME_LENGTH_MAX:
            columns.setdefault(column.name, column)
    return list(columns.values())
