"""Entries in a database: a row of ``paimon_tables`` is a table.

Nothing says where a table's files are but its database's location and its name, as in Paimon's JDBC catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ColumnElement, Table, and_, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from storage_lib.catalog.locks.catalog_lock import CatalogLock, Hold
from storage_lib.catalog.sql.sql_database import DATABASE_PROPERTIES, TABLES, SqlDatabase
from storage_lib.catalog.table_name import TableName
from storage_lib.errors import InvalidInputError
from storage_lib.schema.table_schema import TableSchema

EXISTS = "exists"
LOCATION = "location"
_VALUE_LENGTH_MAX = 1000
_LOCK_SUFFIX = "$turn"
"""No table's name ends like this, so altering an entry does not block commits, which hold the table's own lock."""


class SqlEntries:
    """The rows of one catalog; see ``TableEntries``."""

    are_apart = True

    def __init__(self, database: SqlDatabase, lock: CatalogLock, warehouse: str) -> None:
        self._database = database
        self._lock = lock
        self._warehouse = warehouse

    @contextmanager
    def lock(self, name: TableName) -> Iterator[Hold]:
        """Protected by a lock in addition to the table's own."""
        with self._lock.hold(name.database, f"{name.table}{_LOCK_SUFFIX}") as held:
            yield held

    def place(self, name: TableName) -> str | None:
        """Below its database's location, if there is a row."""
        with self._database.transaction("look up a table") as connection:
            row = connection.execute(select(TABLES.c.table_name).where(self._is_table(name))).first()
        return None if row is None else self.home(name)

    def home(self, name: TableName) -> str:
        """Below its database's location."""
        properties = self.database_properties(name.database) or {}
        # Only a path or URL: some releases of Paimon tell the bare name of a database without properties.
        location = properties.get(LOCATION, "").rstrip("/").removeprefix("file:")
        return f"{location}/{name.table}" if "/" in location else f"{self._warehouse}/{name.directory}"

    def add(self, name: TableName, location: str, schema: TableSchema) -> bool:  # noqa: ARG002  it follows from the name
        """Insert the row: the key decides who is first."""
        self.create_database(name.database, {})
        row = {"catalog_key": self._key, "database_name": name.database, "table_name": name.table}
        try:
            with self._database.transaction("add a table") as connection:
                connection.execute(insert(TABLES).values(row))
        except IntegrityError:
            return False
        return True

    def update(self, name: TableName, schema: TableSchema) -> None:
        """A row says nothing of columns."""

    def remove(self, name: TableName, is_due: Callable[[], bool]) -> None:
        """Delete the row, which nobody can insert again before this transaction ends, and check once more."""
        with self._database.transaction("remove a table") as connection:
            connection.execute(delete(TABLES).where(self._is_table(name)))
            if not is_due():
                connection.rollback()

    def rename(self, name: TableName, new_name: TableName, location: str) -> bool:  # noqa: ARG002  it follows from the name
        """Change the row."""
        self.create_database(new_name.database, {})
        changed = {"database_name": new_name.database, "table_name": new_name.table}
        try:
            with self._database.transaction("rename a table") as connection:
                connection.execute(update(TABLES).where(self._is_table(name)).values(changed))
        except IntegrityError:
            return False
        return True

    def names(self, database: str | None) -> list[TableName]:
        """All rows."""
        of_database = () if database is None else (TABLES.c.database_name == database,)
        wanted = select(TABLES.c.database_name, TABLES.c.table_name).where(TABLES.c.catalog_key == self._key)
        with self._database.transaction("list tables") as connection:
            return [TableName(*row) for row in connection.execute(wanted.where(*of_database))]

    def databases(self) -> list[str]:
        """Those with properties, and those of tables."""
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
        """Insert its properties, of which Paimon wants two."""
        for key, value in properties.items():
            if len(value) > _VALUE_LENGTH_MAX:
                message = f"database {database}: property {key} is longer than {_VALUE_LENGTH_MAX} characters"
                raise InvalidInputError(message)
        default = {EXISTS: "true", LOCATION: f"{self._warehouse}/{database}.db"}
        rows = [
            {"catalog_key": self._key, "database_name": database, "property_key": key, "property_value": value}
            for key, value in {**default, **properties}.items()
        ]
        if self.database_properties(database) is not None:
            return False
        try:
            with self._database.transaction("make a database") as connection:
                connection.execute(insert(DATABASE_PROPERTIES), rows)
        except IntegrityError:
            return False
        return True

    def database_properties(self, database: str) -> dict[str, str] | None:
        """Without the row that only records the existence of the database."""
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

    def drop_database(self, database: str) -> None:
        """Delete its properties."""
        with self._database.transaction("drop a database") as connection:
            connection.execute(delete(DATABASE_PROPERTIES).where(self._is_database(DATABASE_PROPERTIES, database)))

    @property
    def _key(self) -> str:
        return self._database.catalog_key

    def _is_table(self, name: TableName) -> ColumnElement[bool]:
        return and_(self._is_database(TABLES, name.database), TABLES.c.table_name == name.table)

    def _is_database(self, table: Table, database: str) -> ColumnElement[bool]:
        return and_(table.c.catalog_key == self._key, table.c.database_name == database)
