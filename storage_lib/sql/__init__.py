"""FLIP-188's statements over a Spark session and a catalog: ``Session(spark, catalog).execute(text)``.

Text becomes a frozen statement first (``parse``, which needs neither), is checked against the catalog second, and run
third. Queries and expressions are Spark's own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from storage_lib.distribution import missing_module

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
_OF_EXTRAS = ("lark", "pandas", "pyspark", "sqlglot")

__all__ = ["Result", "Session", "Statement", "declared_table", "is_complete", "parse", "statements_of"]


def __getattr__(name: str) -> object:
    """Import the module of a public name when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _OF_EXTRAS:
            raise
        raise missing_module(f"{__name__}.{name}", error, "spark", "sql") from None  # the import inside says less
