"""Entries in a database: each row of ``paimon_tables`` is a table.

The location of its database and its name determine where a table's files are, as in Paimon's JDBC catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Table, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from storage_lib.catalog.locks.catalog_lock import CatalogLock, Hold
from storage_lib.catalog.sql.sql_database import DATABASE_PROPERTIES, TABLES, SqlDatabase
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError, UnavailableError
from storage_lib.io.file_io_factory import is_local, local_root
from storage_lib.schema.table_schema import TableSchema

EXISTS = "exists"
LOCATION = "location"
_VALUE_LENGTH_MAX = 1000
_LOCK_SUFFIX = "$turn"
"""No table's name ends with this suffix, so entry locks do not block commits, which hold the table's own lock."""


class SqlEntries:
    """``TableEntries`` of one catalog in the database."""

    are_apart = True

    def __init__(self, database: SqlDatabase, lock: CatalogLock, warehouse: str) -> None:
        self._database = database
        self._lock = lock
        self._warehouse = warehouse

    @contextmanager
    def lock(self, name: TableName) -> Iterator[Hold]:
        """Hold a lock for the entry, separate from the table's own lock."""
        with self._lock.hold(name.database, f"{name.table}{_LOCK_SUFFIX}") as held:
            yield held

    def place(self, name: TableName) -> str | None:
        """Return the table's home if it has a row, else None."""
        with self._database.transaction("look up a table") as connection:
            row = connection.execute(select(TABLES.c.table_name).where(self._is_table(name))).first()
        return None if row is None else self.home(name)

    def home(self, name: TableName) -> str:
        """Return the table's directory below the location of its database."""
        properties = self.database_properties(name.database) or {}
        # Ignore a bare name, which some releases of Paimon store for a database without properties.
        location = properties.get(LOCATION, "").rstrip("/").removeprefix("file:")
        if "/" not in location:
            return f"{self._warehouse}/{name.directory}"
        # Earlier versions stored relative paths.
        return f"{local_root(location) if is_local(location) else location}/{name.table}"

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:  # noqa: ARG002  it follows from the name
        """Insert the row; the primary key decides between concurrent creators."""
        self.create_database(name.database, {})
        row = {"catalog_key": self._key, "database_name": name.database, "table_name": name.table}
        try:
            with self._database.transaction("add a table") as connection:
                connection.execute(insert(TABLES).values(row))
        except IntegrityError:
            return False
        return True

    def update(self, name: TableName, schema: TableSchema) -> None:
        """Do nothing: rows do not hold columns."""

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Delete the row, then check ``is_due`` before the commit: until then nobody can insert the row again."""
        with self._database.transaction("remove a table") as connection:
            connection.execute(delete(TABLES).where(self._is_table(name)))
            if not is_due():
                connection.rollback()

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:  # noqa: ARG002  it follows from the name
        """Update the row."""
        self.create_database(new_name.database, {})
        changed = {"database_name": new_name.database, "table_name": new_name.table}
        try:
            with self._database.transaction("rename a table") as connection:
                connection.execute(update(TABLES).where(self._is_table(name)).values(changed))
        except IntegrityError:
            return False
        return True

    def names(self, database: str | None) -> list[TableName]:
        """Return the names of all rows."""
        of_database = () if database is None else (TABLES.c.database_name == database,)
        wanted = select(TABLES.c.database_name, TABLES.c.table_name).where(TABLES.c.catalog_key == self._key)
        with self._database.transaction("list tables") as connection:
            return [TableName(*row) for row in connection.execute(wanted.where(*of_database))]

    def databases(self) -> list[str]:
        """Return the databases that have properties or tables."""
        with self._database.transaction("list databases") as connection:
            found = {
                database
                for table in (TABLES, DATABASE_PROPERTIES)
                for (database,) in connection.execute(
                    select(table.c.database_name).where(table.c.catalog_key == self._key).distinct()
                )
            }
        return sorted(found)

    def create_database(self, database: str, properties: Mapping[str, str]) -> bool:
        """Insert the properties, including the two that Paimon requires."""
        _check_lengths(database, properties)
        default = {EXISTS: "true", LOCATION: f"{self._warehouse}/{database}.db"}
        rows = self._rows(database, {**default, **properties})
        if self.database_properties(database) is not None:
            return False
        try:
            with self._database.transaction("make a database") as connection:
                connection.execute(insert(DATABASE_PROPERTIES), rows)
        except IntegrityError:
            return False
        return True

    def database_properties(self, database: str) -> dict[str, str] | None:
        """Return the properties, except the one that only records that the database exists."""
        wanted = select(DATABASE_PROPERTIES.c.property_key, DATABASE_PROPERTIES.c.property_value)
        with self._database.transaction("look up a database") as connection:
            found = connection.execute(wanted.where(self._is_database(DATABASE_PROPERTIES, database))).all()
            has_tables = (
                found
                or connection.execute(
                    select(TABLES.c.table_name).where(self._is_database(TABLES, database)).limit(1)
                ).first()
            )
        if not has_tables:
            return None
        return {str(key): str(value) for key, value in found if key != EXISTS}

    def change_database(self, database: str, updates: Mapping[str, str], removals: Collection[str]) -> bool:
        """Replace the properties in one transaction."""
        _check_lengths(database, updates)
        if self.database_properties(database) is None:
            return False
        changed = [*updates, *(key for key in removals if key not in (EXISTS, LOCATION))]
        of_database = self._is_database(DATABASE_PROPERTIES, database)
        try:
            with self._database.transaction("alter a database") as connection:
                connection.execute(
                    delete(DATABASE_PROPERTIES).where(of_database, DATABASE_PROPERTIES.c.property_key.in_(changed))
                )
                if updates:
                    connection.execute(insert(DATABASE_PROPERTIES), self._rows(database, updates))
        except IntegrityError as error:
            message = f"database {database} is being altered by another process; try again"
            raise UnavailableError(message) from error
        return True

    def drop_database(self, database: str) -> None:
        """Delete the database's properties."""
        with self._database.transaction("drop a database") as connection:
            connection.execute(delete(DATABASE_PROPERTIES).where(self._is_database(DATABASE_PROPERTIES, database)))

    def _rows(self, database: str, properties: Mapping[str, str]) -> list[dict[str, str]]:
        return [
            {"catalog_key": self._key, "database_name": database, "property_key": key, "property_value": value}
            for key, value in properties.items()
        ]

    @property
    def _key(self) -> str:
        return self._database.catalog_key

    def _is_table(self, name: TableName) -> ColumnElement[bool]:
        return and_(self._is_database(TABLES, name.database), TABLES.c.table_name == name.table)

    def _is_database(self, table: Table, database: str) -> ColumnElement[bool]:
        return and_(table.c.catalog_key == self._key, table.c.database_name == database)


def _check_lengths(database: str, properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        if len(value) > _VALUE_LENGTH_MAX:
            message = f"database {database}: property {key} is longer than {_VALUE_LENGTH_MAX} characters"
            raise InvalidInputError(message)
