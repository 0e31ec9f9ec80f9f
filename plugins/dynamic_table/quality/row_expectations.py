"""Expectations of severity ``reject``: rows of a source that do not meet them are refused before they are written.

Only expectations that judge each row by itself are allowed: whether a row is taken must not depend on the others of the
same commit.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamic_table.arguments.rendered_argument import checked_mapping
from dynamic_table.quality.data_quality import REJECT, checked_expectations, unmet_rows
from dynamic_table.quality.expectation_suites import expectations_of

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from storage_lib.table.sources.row_check import RowCheck

__all__ = ["ROW_CHECK", "checked_expectations_of", "given_row_check", "row_check", "row_checks"]

ROW_CHECK = f"{__name__}:given_row_check"
"""Name of the function that makes a check in the process of a sink."""

VALUE_LENGTH_MAX = 100
OF_ONE_ROW = frozenset(
    {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_pair_values_to_be_in_set",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_dateutil_parseable",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_json_parseable",
        "expect_column_values_to_be_null",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_match_regex_list",
        "expect_column_values_to_match_strftime_format",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
        "expect_column_values_to_not_match_regex_list",
        "expect_multicolumn_sum_to_equal",
        "expect_multicolumn_values_to_be_equal",
        "expect_select_column_values_to_be_unique_within_record",
    }
)


_turn = threading.Lock()  # Great Expectations has one context for all threads of a process


def given_row_check(expectations: object) -> RowCheck:
    """Return the check of ``row_check``, for expectations of which some have severity ``reject``."""
    from storage_lib.errors import InvalidInputError

    check = row_check(expectations)
    if check is None:
        message = f"none of the expectations has severity {REJECT}, so that they refuse no row"
        raise InvalidInputError(message)
    return check


def row_checks(expectations: object, folder: Path) -> dict[str, RowCheck]:
    """Return the checks of several tables: a mapping from ``database.table`` to its expectations, as for one table.

    Relative paths are resolved against ``folder``, the DAG file's. Raises InvalidInputError for expectations that are
    malformed, or none of which refuses rows.
    """
    of_tables = checked_mapping(expectations, "expectations")
    return {table: checked_expectations_of(given, table, folder)[1] for table, given in of_tables.items()}


def checked_expectations_of(given: object, table: str, folder: Path) -> tuple[Any, RowCheck]:
    """Return the expectations of a table as plain data, and their check; errors name the table."""
    from storage_lib.errors import InvalidInputError

    found = expectations_of(given, table, folder)
    try:
        return found, given_row_check(found)
    except InvalidInputError as error:
        message = f"{table}: {error}"
        raise InvalidInputError(message) from error


def row_check(expectations: object) -> RowCheck | None:
    """Return a check for ``ingest`` by the expectations of severity ``reject``; None without one.

    Raises InvalidInputError for an expectation that is malformed, or that does not judge each row by itself.
    """
    specs = [spec for spec in checked_expectations(expectations) if spec["severity"] == REJECT]
    for spec in specs:
        _refuse_if_of_several_rows(spec)
    if not specs:
        return None

    def check(rows: pa.Table) -> dict[int, tuple[str | None, str]]:
        found: dict[int, tuple[str | None, str]] = {}
        with _turn:
            unmet = unmet_rows(rows, specs)
        for spec, places in zip(specs, unmet, strict=True):
            column = spec["kwargs"].get("column")
            values = None if column is None else rows.column(column)
            for place in places:
                value = "" if values is None else f": {str(values[place].as_py())[:VALUE_LENGTH_MAX]!r}"
                found.setdefault(place, (column, f"it does not meet {_spelled(spec)}{value}"))
        return found

    return check


def _spelled(spec: Mapping[str, Any]) -> str:
    return f"{spec['type']}({', '.join(f'{key}={value!r}' for key, value in spec['kwargs'].items())})"


def _refuse_if_of_several_rows(spec: Mapping[str, Any]) -> None:
    from storage_lib.errors import InvalidInputError

    if spec["type"] not in OF_ONE_ROW:
        message = (
            f"{spec['type']} does not judge each row by itself, so it can't have severity {REJECT}; use critical, and "
            f"validate the table. These can: {', '.join(sorted(OF_ONE_ROW))}"
        )
        raise InvalidInputError(message)
    if "mostly" in spec["kwargs"]:
        message = f"{spec['type']} has severity {REJECT} and mostly: a row is taken or not; leave mostly out"
        raise InvalidInputError(message)
