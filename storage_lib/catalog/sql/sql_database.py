"""Database that stores a catalog, with the tables of Paimon's JDBC catalog, so that each catalog sees the other's.

The lock table has the column ``lock_owner``, which older releases of Paimon lack and newer ones have.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import (
    URL,
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    func,
    inspect,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.types import TIMESTAMP

from storage_lib.errors import CommitOutcomeUnknownError, InvalidInputError, UnavailableError
from storage_lib.schema.options.catalog_options import CATALOG_KEY, JDBC_PREFIX, URI
from storage_lib.schema.options.secret_text import without_password

DEFAULT_CATALOG_KEY = "jdbc"
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "mysql": "mysql+pymysql"}
_METADATA = MetaData()
TABLES = Table(
    "paimon_tables",
    _METADATA,
    Column("catalog_key", String(255), primary_key=True),
    Column("database_name", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
)
DATABASE_PROPERTIES = Table(
    "paimon_database_properties",
    _METADATA,
    Column("catalog_key", String(255), primary_key=True),
    Column("database_name", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000)),
)
LOCKS = Table(
    "paimon_distributed_locks",
    _METADATA,
    Column("lock_id", String(255), primary_key=True),
    Column("acquired_at", TIMESTAMP, server_default=func.current_timestamp(), nullable=False),
    Column("expire_time_seconds", BigInteger, server_default="0", nullable=False),
    Column("lock_owner", Text().with_variant(String(36), "mysql")),
)


class SqlDatabase:
    """Database with the entries of one catalog, identified by ``catalog_key``. Thread-safe.

    ``uri`` is SQLAlchemy's or JDBC's (``jdbc:sqlite:/path``, ``jdbc:postgresql://host/database``); user and password
    may be given separately as ``jdbc.user`` and ``jdbc.password``. Creates missing tables. Raises
    ``InvalidInputError`` for a missing uri or one that no driver supports.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.catalog_key = options.get(CATALOG_KEY, DEFAULT_CATALOG_KEY)
        self._url = _url(options)
        self.shown = without_password(str(self._url.render_as_string(hide_password=True)))
        try:
            self._engine = _engine(self._url)
        except (NoSuchModuleError, ArgumentError) as error:
            message = f"option {URI} is {self.shown}: no database driver supports it; {error}"
            raise InvalidInputError(message) from error
        self._pid = os.getpid()
        # Close pooled connections when this object is collected.
        weakref.finalize(self, self._engine.dispose)
        with self.errors("open"):
            self._make_tables()

    @contextmanager
    def transaction(self, act: str) -> Iterator[Connection]:
        """Open a transaction that is committed at the end of the block; ``act`` is for messages.

        Raises ``UnavailableError`` if nothing was done, ``CommitOutcomeUnknownError`` if the commit was not confirmed,
        and SQLAlchemy's ``IntegrityError`` for a duplicate key.
        """
        if os.getpid() != self._pid:
            # After a fork the connections belong to the parent.
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        with self.errors(act), self._engine.connect() as connection:
            yield connection
            try:
                connection.commit()
            except DBAPIError as error:
                message = (
                    f"unknown outcome: no answer whether the catalog at {self.shown} did {act}: {_first_line(error)}"
                )
                raise CommitOutcomeUnknownError(message) from error

    @contextmanager
    def errors(self, act: str) -> Iterator[None]:
        """Convert database errors in the block, except ``IntegrityError``, to ``UnavailableError``."""
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            message = f"the catalog at {self.shown} does not answer ({act}): {_first_line(error)}"
            raise UnavailableError(message) from error

    def _make_tables(self) -> None:
        """Create missing tables; another process may do so concurrently."""
        for _ in range(2):
            try:
                _METADATA.create_all(self._engine)
            except SQLAlchemyError:
                there = inspect(self._engine).get_table_names()
                if not {table.name for table in _METADATA.tables.values()} <= set(there):
                    continue
            return
        _METADATA.create_all(self._engine)


def _url(options: Mapping[str, str]) -> URL:
    text = options.get(URI, "").strip()
    if not text:
        message = (
            f"metastore=sql needs option {URI}: the database that keeps the catalog, such as "
            "postgresql://host/database or sqlite:////path/of/catalog.db"
        )
        raise InvalidInputError(message)
    jdbc = text.removeprefix("jdbc:")
    if jdbc != text and jdbc.startswith("sqlite:") and not jdbc.startswith("sqlite://"):
        jdbc = f"sqlite:///{jdbc.removeprefix('sqlite:').removeprefix('file:')}"
    try:
        url = make_url(jdbc)
    except ArgumentError as error:
        message = f"option {URI} is {without_password(text)!r}, which is not the URL of a database"
        raise InvalidInputError(message) from error
    if "@" in (url.host or ""):
        # The URL's password was parsed up to its first @: the rest would go to a name server and into errors.
        message = f"option {URI} is {without_password(text)!r}, whose user or password holds an @: write it as %40"
        raise InvalidInputError(message)
    driver = _DRIVERS.get(url.drivername)
    if url.get_backend_name() == "sqlite":
        return url
    url = url if driver is None else url.set(drivername=driver)
    user, password = (options.get(f"{JDBC_PREFIX}{key}") for key in ("user", "password"))
    url = url if user is None else url.set(username=user)
    return url if password is None else url.set(password=password)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        # A writer waits for another writer instead of failing at once.
        return create_engine(url, poolclass=NullPool, connect_args={"timeout": 30})
    # Keeps one connection; pre-ping detects that the server has closed it.
    return create_engine(url, pool_size=1, max_overflow=50, pool_pre_ping=True)


def _first_line(error: Exception) -> str:
    description = str(getattr(error, "orig", None) or error).strip()
    return without_password(description.splitlines()[0] if description else type(error).__name__)
