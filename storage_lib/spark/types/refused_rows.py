"""Expressions with which Spark's JVM refuses a row: the query fails with an error of this library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import Column

_MARK = "storage_lib refused a row: "
_RAISED = re.compile(rf"\[USER_RAISED_EXCEPTION\] {re.escape(_MARK)}(.*)")


def refused_if(condition: Column, value: Column, message: str) -> Column:
    """Return ``value``; a row for which ``condition`` is true (not null) fails the query with ``message``."""
    # Spark appends its own state to the last line.
    return sql.when(condition, sql.raise_error(sql.lit(f"{_MARK}{message}\n"))).otherwise(value)


def refusal_in(text: str) -> InvalidInputError | None:
    """Return the error of ``refused_if`` in the text of one of Spark's exceptions; None if there is none.

    The text may also contain the plan, and in it the messages of every check; only the raised one follows Spark's name
    of the error.
    """
    found = _RAISED.search(text)
    return None if found is None else InvalidInputError(found[1].strip())
