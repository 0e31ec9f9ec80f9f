"""A connection is a SQL session in this process: each of dbt's threads has one, over one Spark session and catalog."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState, Credentials
from dbt.adapters.dynamic_tables.branch import Branch
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.exceptions import DbtConfigError, DbtDatabaseError, DbtRuntimeError

from storage_lib import Catalog, open_catalog
from storage_lib.errors import StorageError
from storage_lib.sql import Result, Session


@dataclass
class DynamicTablesCredentials(Credentials):
    """A profile: the warehouse and options of its catalog, settings of Spark, and the database of the models.

    ``options`` are those of ``open_catalog``; ``spark`` are settings of the Spark session. ``branch`` is the branch of
    the tables that models are written to; empty for the tables themselves.
    """

    schema: str = ""
    warehouse: str = ""
    database: str | None = None  # type: ignore[assignment]  # names have two parts
    options: dict[str, Any] = field(default_factory=dict)
    spark: dict[str, Any] = field(default_factory=dict)
    branch: str = ""

    def __post_init__(self) -> None:
        """Refuse a profile without a warehouse, one with a database as well as a schema, and names of no branch."""
        if not self.warehouse or not self.schema:
            missing = (
                "schema: the database of the models" if self.warehouse else "warehouse: the tables' directory or URL"
            )
            message = f"a profile of dynamic_tables needs a {missing}"
            raise DbtConfigError(message)
        if self.database not in (None, self.schema):
            message = (
                f"database {self.database!r}: names of dynamic tables have two parts, and dbt's schema is the first "
                "one; leave database out"
            )
            raise DbtConfigError(message)
        self.database = None
        if self.branch and (self.branch == "main" or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", self.branch)):
            message = (
                f"branch {self.branch!r} is not the name of a branch: a letter, then letters, digits and '_', and not "
                "main, which is the tables themselves: leave branch out"
            )
            raise DbtConfigError(message)

    @property
    def type(self) -> str:
        """dbt's name of the adapter."""
        return "dynamic_tables"

    @property
    def unique_field(self) -> str:
        """The warehouse, of which dbt's telemetry sends a hash."""
        return self.warehouse

    def _connection_keys(self) -> tuple[str, ...]:
        return ("warehouse", "schema", "branch")


class Cursor:
    """Runs statements in a session, and keeps the rows of the last one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._result: Result | None = None
        self._rows: list[tuple[Any, ...]] | None = None
        self.message = ""
        self.row_count: int | None = None

    def execute(self, text: str, bindings: Sequence[object] | None = None) -> None:
        """Run a script of statements. Raises ``DbtRuntimeError`` for bindings, which the session has not."""
        if bindings:
            message = "statements with bindings are not supported; seeds are appended as they are"
            raise DbtRuntimeError(message)
        self._result = self._rows = None
        for result in self._session.execute_script(text):
            if result.stream is not None:
                result.stream.awaitTermination()
            self._result, self.message, self.row_count = result, result.message, result.row_count

    @property
    def description(self) -> list[tuple[str, str]] | None:
        """Name and type of each column of the result; None if the statement gives no rows."""
        if self._result is None or not self._result.has_rows:
            return None
        if self._result.dataframe is None:
            return [(name, "string") for name in self._result.to_arrow().column_names]
        return [(each.name, each.dataType.simpleString()) for each in self._result.dataframe.schema.fields]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the rows that were not fetched yet."""
        return self.fetchmany(None)

    def fetchmany(self, size: int | None) -> list[tuple[Any, ...]]:
        """Return the next ``size`` rows."""
        if self._rows is None:
            self._rows = [] if self._result is None else _rows(self._result)
        found, self._rows = (self._rows, []) if size is None else (self._rows[:size], self._rows[size:])
        return found

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last one."""
        return next(iter(self.fetchmany(1)), None)


def _rows(result: Result) -> list[tuple[Any, ...]]:
    table = result.to_arrow()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table.num_columns else []


@dataclass
class Handle:
    """What dbt calls the handle of a connection."""

    session: Session

    def cursor(self) -> Cursor:
        """Return a new cursor."""
        return Cursor(self.session)

    def close(self) -> None:
        """Drop the session's temporary tables and views."""
        self.session.close()


class DynamicTablesConnectionManager(SQLConnectionManager):
    """Opens sessions. Each statement is a commit of its own, without transactions."""

    TYPE = "dynamic_tables"

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Open a session over the Spark session and the catalog of this process."""
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials = connection.credentials
        session = Session(_spark(credentials), catalog_of(credentials), database=credentials.schema)
        connection.handle, connection.state = Handle(session), ConnectionState.OPEN
        return connection

    @classmethod
    def get_response(cls, cursor: Cursor) -> AdapterResponse:
        """Return what the statement says it has done."""
        return AdapterResponse(_message=cursor.message or "OK", rows_affected=cursor.row_count)

    def cancel(self, connection: Connection) -> None:
        """Cancel the jobs of the Spark session: dbt cancels all of its threads at once."""
        _spark(connection.credentials).sparkContext.cancelAllJobs()

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        """Report errors of the library as dbt's, with what they say."""
        try:
            yield
        except StorageError as error:
            raise DbtDatabaseError(str(error)) from error
        except DbtRuntimeError:
            raise
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            raise DbtRuntimeError(message) from error

    def begin(self) -> None:
        """Do nothing: sessions have no transactions."""

    def commit(self) -> None:
        """Do nothing: each statement has committed."""

    def add_begin_query(self) -> None:
        """Do nothing."""

    def add_commit_query(self) -> None:
        """Do nothing."""

    def clear_transaction(self) -> None:
        """Do nothing."""

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """Return the name of a type, as contracts compare it: without lengths, in capitals as tables show it."""
        return re.sub(r"\([^)]*\)", "", str(type_code)).upper()


_LOCK = threading.Lock()
_QUIET = {"spark.ui.showConsoleProgress": "false"}
"""Spark's progress bars would be written between the lines of dbt."""
_CATALOGS: dict[tuple[str, tuple[tuple[str, str], ...]], Catalog] = {}


def branch_of(credentials: DynamicTablesCredentials) -> Branch | None:
    """Return the branch that a profile names; None for the tables themselves."""
    return Branch(credentials.branch, catalog_of(credentials)) if credentials.branch else None


def catalog_of(credentials: DynamicTablesCredentials) -> Catalog:
    """Return the catalog of a profile, one per process."""
    key = (credentials.warehouse, tuple(sorted(_texts(credentials.options).items())))
    with _LOCK:
        if key not in _CATALOGS:
            _CATALOGS[key] = open_catalog(credentials.warehouse, _texts(credentials.options))
        return _CATALOGS[key]


def _spark(credentials: DynamicTablesCredentials) -> Any:
    from storage_lib.spark import session

    with _LOCK:
        return session("dbt", conf=_QUIET | _texts(credentials.spark))


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    """Return settings as Spark takes them: YAML has made numbers and truth values of some."""
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
