"""FLIP-188's statements over a Spark session and a catalog: ``Session(spark, catalog).execute(text)``.

Text becomes a frozen statement first (``parse``, which needs neither), is checked against the catalog second, and run
third. Queries and expressions are Spark's own. docs/sql.md has every statement.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from storage_lib.sql.result import Result
    from storage_lib.sql.script import is_complete, statements_of
    from storage_lib.sql.session import Session
    from storage_lib.sql.table_declaration import declared_table
    from storage_lib.sql.tree_reader import Statement, parse

_HOMES = {
    "Result": "result",
    "Session": "session",
    "Statement": "tree_reader",
    "declared_table": "table_declaration",
    "is_complete": "script",
    "parse": "tree_reader",
    "statements_of": "script",
}

__all__ = ["Result", "Session", "Statement", "declared_table", "is_complete", "parse", "statements_of"]


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.{home}"), name)
