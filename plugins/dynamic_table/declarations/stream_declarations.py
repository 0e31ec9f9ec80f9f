"""Continuous streams into tables, at most one per table, declared in the file that declares the tables.

    tables:
      shop.orders:
        columns: ...
        stream:
          source: {kind: debezium_json, name: shop.changes}
          trigger_seconds: 10

The keys are `StreamSinkOperator`'s arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import (
    checked_count,
    checked_names,
    checked_number,
    checked_text,
)
from dynamic_table.declarations.table_declarations import check_values, declared_tables, refusal
from dynamic_table.sinks.sink_settings import checked_open_options, checked_source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["read_streams"]


def _checked_expectations(value: object) -> object:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, Mapping) for each in value)):
        return value
    from storage_lib.errors import InvalidInputError

    message = f"expectations are {value!r}; give a list of {{type, kwargs, severity}}, or the path of a file with one"
    raise InvalidInputError(message)


# Check of each key's value.
CHECKS: Mapping[str, Callable[[Any], object]] = {
    "source": checked_source,
    "trigger_seconds": lambda value: checked_number(value, "trigger_seconds"),
    "max_rows_per_trigger": lambda value: checked_count(value, "max_rows_per_trigger", least=1),
    "select": lambda value: checked_names(value, "select"),
    "write_options": lambda value: checked_open_options(value, "write_options"),
    "master": lambda value: checked_text(value, "master"),
    "spark_conf": lambda value: checked_open_options(value, "spark_conf"),
    "expectations": _checked_expectations,
}


def read_streams(source: str, folder: Path) -> list[dict[str, Any]]:
    """Return ``StreamSinkOperator``'s arguments for every table with a ``stream``, in the order declared.

    ``source`` and errors are as in ``read_declarations``.
    """
    where, tables = declared_tables(source, folder)
    return [_stream(where, name, table["stream"]) for name, table in tables.items() if table.get("stream") is not None]


def _stream(where: str, table: str, declared: object) -> dict[str, Any]:
    if not isinstance(declared, Mapping) or "source" not in declared:
        raise refusal(where, f"table {table}: stream is {declared!r}; it has to be a mapping with at least a source")
    check_values(where, f"table {table}: stream", f"table {table}, stream", declared, CHECKS)
    return {"table": table, **declared}
