"""Detects expectations that contain code, which only DAG authors may write.

Great Expectations passes a row condition to ``pandas.DataFrame.query``, which can call any Python function, and the
text of a query to Spark, which executes any statement. So neither may come from a form. Files of expectations and
functions may contain them, because DAG authors write both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["refuse_code"]

CONDITION = "row_condition"
QUERY = "query"  # unexpected_rows_query, base_query, comparison_query
COLUMNS = "column"  # column, column_A, column_list: Spark may parse the value as an expression
NO_NAME = frozenset("()'\"`;@\\")


def refuse_code(expectations: object) -> None:
    """Raise InvalidInputError for expectations that contain code; does not check them otherwise."""
    from storage_lib.errors import InvalidInputError

    for key, value in _pairs(expectations):
        if _is_code(key, value):
            message = (
                f"the given expectations contain {key}={value!r}, which may run code and is not allowed from a form: "
                "write them into a file next to the DAG, such as expectations/database.table.yaml, or let "
                "a function return them, and give its name"
            )
            raise InvalidInputError(message)


def _is_code(key: str, value: object) -> bool:
    if value is None:
        return False
    if key == CONDITION or key.endswith(QUERY):
        return True
    return key.startswith(COLUMNS) and any(NO_NAME & set(text) for text in _texts(value))


def _pairs(value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield str(key), one
            yield from _pairs(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _pairs(one)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
