"""Entries in a Hive metastore: our tables are its external tables in Paimon's format, which Hive clients see."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any

from pymetastore.hive_metastore.ttypes import (
    AlreadyExistsException,
    Database,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    UnknownDBException,
)

from storage_lib.catalog.hive.hive_table import (
    described_by,
    hive_table,
    is_ours,
    location_of,
    schema_id_of,
    set_location,
)
from storage_lib.catalog.locks.catalog_lock import CatalogLock, Hold
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import AlreadyExistsError, InvalidInputError
from storage_lib.hive.hive_columns import alter_entry
from storage_lib.hive.hive_location import hive_location
from storage_lib.hive.hive_metastore import HiveMetastore
from storage_lib.schema.table_schema import TableSchema

_LOCK_SUFFIX = "$turn"
"""No table's name ends with this suffix, so entry locks do not block commits, which hold the table's own lock."""
_DEFAULT_DATABASE = "default"
_COMMENT = "comment"
_LOCATION = "location"


class HiveEntries:
    """``TableEntries`` of one metastore. Names follow Hive's rules: lower-case letters, digits and ``_``."""

    are_apart = True

    def __init__(
        self, metastore: HiveMetastore, lock: CatalogLock, warehouse: str, *, location_in_properties: bool
    ) -> None:
        self._metastore = metastore
        self._lock = lock
        self._warehouse = warehouse
        self._in_properties = location_in_properties

    @contextmanager
    def lock(self, name: TableName) -> Iterator[Hold]:
        """Hold a lock of the metastore for the entry, separate from the table's own lock."""
        _check(name.database, name.table)
        with self._lock.hold(name.database, f"{name.table}{_LOCK_SUFFIX}") as held:
            yield held

    def place(self, name: TableName) -> str | None:
        """Return the location that the metastore stores."""
        table = self._get(name)
        return None if table is None else location_of(table)

    def home(self, name: TableName) -> str:
        """Return the directory below the warehouse that the name determines."""
        _check(name.database, name.table)
        return f"{self._warehouse}/{name.directory}"

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:
        """Create the metastore's table and its database."""
        self.create_database(name.database, {})
        table = hive_table(name, location, schema, owner=getpass.getuser(), in_properties=self._in_properties)
        try:
            self._metastore.tell("create a table", lambda client: client.create_table(table))
        except AlreadyExistsException:
            return False
        except InvalidObjectException as error:
            message = f"table {name}: the metastore refuses it: {error.message}"
            raise InvalidInputError(message) from error
        return True

    def update(self, name: TableName, schema: TableSchema) -> None:
        """Alter the metastore's table, unless it already has this or a newer schema."""
        table = self._get(name)
        if table is None or schema_id_of(table) >= schema.id:
            return
        former = deepcopy(table)
        alter_entry(lambda entry: self._alter(name, entry), described_by(table, schema), former)

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Drop the metastore's table but not its files; the caller holds its lock."""
        if self._get(name) is None or not is_due():
            return
        with suppress(NoSuchObjectException):
            self._metastore.tell(
                "drop a table", lambda client: client.drop_table(name.database, name.table, deleteData=False)
            )

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:
        """Change the name and location of the metastore's table."""
        table = self._get(name)
        if table is None:
            return self._get(new_name) is not None
        self.create_database(new_name.database, {})
        table.dbName, table.tableName = new_name.database, new_name.table
        set_location(table, location, in_properties=self._in_properties)
        try:
            self._alter(name, table)
        except (AlreadyExistsException, InvalidOperationException):
            return False
        return True

    def names(self, database: str | None) -> list[TableName]:
        """Return the names of the tables in Paimon's format."""
        return [
            TableName(each, table.tableName)
            for each in (self.databases() if database is None else [database])
            for table in self._tables(each)
            if is_ours(table)
        ]

    def databases(self) -> list[str]:
        """Return all databases of the metastore."""
        found: list[str] = self._metastore.ask("list databases", lambda client: client.get_all_databases())
        return sorted(found)

    def create_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Create the metastore's database; only Hive's own tables use its location."""
        _check(database)
        more = {key: value for key, value in properties.items() if key not in (_COMMENT, _LOCATION)}
        place = properties.get(_LOCATION) or f"{self._warehouse}/{database}.db"
        if self.database_properties(database) is not None:
            return False
        made = Database(name=database, description=properties.get(_COMMENT, ""), parameters=more)
        if not self._in_properties:
            made.locationUri = hive_location(place)
        try:
            self._metastore.tell("create a database", lambda client: client.create_database(made))
        except AlreadyExistsException:
            return False
        return True

    def database_properties(self, database: str) -> dict[str, str] | None:
        """Return the database's parameters, comment and location."""
        _check(database)
        try:
            found = self._metastore.ask("look up a database", lambda client: client.get_database(database))
        except NoSuchObjectException:
            return None
        attributes = {_COMMENT: found.description, _LOCATION: found.locationUri}
        return {**(found.parameters or {}), **{key: value for key, value in attributes.items() if value}}

    def change_database(self, database: str, updates: Mapping[str, str], removals: Collection[str]) -> bool:
        """Alter the metastore's database, except its comment. Of two changes at once, one may be lost."""
        _check(database)
        if _COMMENT in updates or _COMMENT in removals:
            message = f"the {_COMMENT} of database {database} can't be changed: Hive's metastores ignore such a change"
            raise InvalidInputError(message)
        try:
            found = self._metastore.ask("look up a database", lambda client: client.get_database(database))
        except NoSuchObjectException:
            return False
        kept = {key: value for key, value in (found.parameters or {}).items() if key not in removals}
        found.parameters = {**kept, **updates}
        self._metastore.tell("alter a database", lambda client: client.alter_database(database, found))
        return True

    def drop_database(self, database: str) -> None:
        """Drop the metastore's database."""
        if database == _DEFAULT_DATABASE:
            message = "database default belongs to the metastore and can't be dropped"
            raise InvalidInputError(message)
        try:
            self._metastore.tell("drop a database", lambda client: client.drop_database(database, False, False))
        except NoSuchObjectException:
            return
        except InvalidOperationException as error:
            message = f"database {database} holds tables of other formats: {error.message}"
            raise InvalidInputError(message) from error

    def _get(self, name: TableName) -> Any:
        """Return the metastore's table or None. Raises ``AlreadyExistsError`` for a table in another format."""
        _check(name.database, name.table)
        try:
            table = self._metastore.ask("look up a table", lambda client: client.get_table(name.database, name.table))
        except NoSuchObjectException:
            return None
        if not is_ours(table):
            message = f"{name} is a Hive table in another format ({table.sd.inputFormat}), which is not supported"
            raise AlreadyExistsError(message)
        return table

    def _tables(self, database: str) -> list[Any]:
        try:
            names = self._metastore.ask("list tables", lambda client: client.get_all_tables(database))
            found: list[Any] = self._metastore.ask(
                "list tables", lambda client: client.get_table_objects_by_name(database, names)
            )
        except (NoSuchObjectException, UnknownDBException):
            return []
        return found

    def _alter(self, name: TableName, table: Any) -> None:
        self._metastore.tell("alter a table", lambda client: client.alter_table(name.database, name.table, table))


def _check(*names: str) -> None:
    for name in names:
        if name != name.lower() or "-" in name:
            message = (
                f"{name!r} is not a valid name in a Hive metastore, which allows neither capitals nor '-'; write "
                f"{name.lower().replace('-', '_')!r}"
            )
            raise InvalidInputError(message)
