"""Sessions of the one DuckDB of this process, which has a limited memory and no place on disk.

A statement that needs more memory fails, and another engine computes it.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from storage_lib.distribution import import_problem
from storage_lib.materialized.engine import EngineRefusalError

if TYPE_CHECKING:
    import duckdb

_MEMORY = "2GB"
_SETTINGS = {
    "memory_limit": _MEMORY,
    "temp_directory": "",
    "preserve_insertion_order": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}

_lock = threading.Lock()
_database: duckdb.DuckDBPyConnection | None = None


def _forget() -> None:
    """Leave DuckDB to the parent of a forked process, which has none of its threads."""
    global _database, _lock
    if _database is not None:
        # To close it would wait for these threads, and crash: with one reference more, it is never closed.
        _add_reference(_database)
    _database, _lock = None, threading.Lock()


def _add_reference(value: object) -> None:
    add = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
    add(value)


os.register_at_fork(after_in_child=_forget)


class DuckDbSession:
    """Relations of one statement, whose names no other session knows. ``size_max``: bytes of all files to read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, size_max: int) -> None:
        self._connection = connection
        self._size_left = size_max
        self._named = 0

    def add_size(self, size_bytes: int) -> None:
        """Count the bytes of files that a statement reads. Raises ``EngineRefusalError`` if they are too many."""
        self._size_left -= size_bytes
        if self._size_left < 0:
            raise EngineRefusalError("the files are larger than refresh.in-process-size-max")

    def register(self, rows: pa.Table) -> str:
        """Return the name of a relation with these rows."""
        name = self._new_name()
        self._connection.register(name, rows)
        return name

    def view(self, select: str) -> str:
        """Return the name of a view. Raises ``EngineRefusalError``."""
        name = self._new_name()
        self.execute(f"CREATE TEMP VIEW {name} AS {select}")
        return name

    def keep(self, name: str, select: str) -> int:
        """Compute the rows of a relation with this name, once; return their number. Raises ``EngineRefusalError``."""
        with _refusals():
            [(count,)] = self._connection.execute(f"CREATE TEMP TABLE {name} AS {select}").fetchall()
        return int(count)

    def rows(self, select: str) -> pa.Table:
        """Compute rows. Raises ``EngineRefusalError``."""
        with _refusals():
            return self._connection.sql(select).to_arrow_table()

    def execute(self, statement: str) -> None:
        """Run a statement without rows. Raises ``EngineRefusalError``."""
        with _refusals():
            self._connection.execute(statement)

    def _new_name(self) -> str:
        self._named += 1
        return f"rows_{self._named}"


@contextmanager
def duckdb_session(size_max: int) -> Iterator[DuckDbSession]:
    """Give the body a session. Raises ``EngineRefusalError`` if DuckDB is missing, or too old."""
    connection = _opened().cursor()
    try:
        yield DuckDbSession(connection, size_max)
    finally:
        connection.close()


def _opened() -> duckdb.DuckDBPyConnection:
    global _database  # noqa: PLW0603  one DuckDB shares its threads and its memory between all sessions
    with _lock:
        if _database is None:
            try:
                import duckdb  # noqa: PLC0415  an extra
            except ImportError as error:
                raise EngineRefusalError(import_problem("a refresh without Spark", error)) from error
            with _refusals():
                opened = duckdb.connect(":memory:", config=dict(_SETTINGS))
                opened.execute("SET GLOBAL TimeZone = 'UTC'")
            _check(opened)
            _database = opened
        return _database


def _check(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise ``EngineRefusalError`` unless a division by zero is an error, as it is since DuckDB 2.0."""
    import duckdb  # noqa: PLC0415  an extra

    try:
        connection.execute("SELECT a % b, a // b FROM (VALUES (1, 0)) AS r(a, b)").fetchall()
    except duckdb.Error:
        return
    raise EngineRefusalError("DuckDB is older than 2.0")


@contextmanager
def _refusals() -> Iterator[None]:
    """Raise ``EngineRefusalError`` for each error of DuckDB: of a value, of memory, of a file that has expired."""
    import duckdb  # noqa: PLC0415  an extra

    try:
        yield
    except duckdb.Error as error:
        raise EngineRefusalError(str(error).splitlines()[0][:300]) from error
