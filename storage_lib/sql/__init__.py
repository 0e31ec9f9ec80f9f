"""FLIP-188's statements over a Spark session and a catalog: ``Session(spark, catalog).execute(text)``.

Text is parsed into a frozen statement (``parse``, which needs neither), checked against the catalog, and then run.
Queries and expressions are Spark SQL.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from storage_lib.distribution import import_failure

if TYPE_CHECKING:
    from storage_lib.sql.definition.table_declaration import declared_table
    from storage_lib.sql.read.tree_reader import Statement, parse
    from storage_lib.sql.session import Session
    from storage_lib.sql.state.result import Result
    from storage_lib.sql.text.script import is_complete, statements_of

_HOMES = {
    "Result": "state.result",
    "Session": "session",
    "Statement": "read.tree_reader",
    "declared_table": "definition.table_declaration",
    "is_complete": "text.script",
    "parse": "read.tree_reader",
    "statements_of": "text.script",
}

__all__ = ["Result", "Session", "Statement", "declared_table", "is_complete", "parse", "statements_of"]


def __getattr__(name: str) -> object:
    """Import the module of a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except (ImportError, AttributeError) as error:
        raise import_failure(f"{__name__}.{name}", error, "spark", "sql") from error
