"""Expectations as plain data, answers as lines that a person can read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dynamic_table.data_quality import check_expectations
from storage_lib.errors import InvalidInputError

# Great Expectations imports what Python is about to lose.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROWS = pa.table({"id": [1, 2, 2, None], "origin": ["EWR", "JFK", "XXX", "LGA"]})


def test_failures_are_counted_by_severity_and_told_in_lines() -> None:
    report = check_expectations(
        ROWS,
        [
            {"type": "expect_table_row_count_to_equal", "kwargs": {"value": 4}},
            {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id"}},
            {
                "type": "expect_column_values_to_be_in_set",
                "kwargs": {"column": "origin", "value_set": ["EWR", "JFK", "LGA"]},
                "severity": "warning",
            },
        ],
    )

    assert report.checked == 3
    assert report.failed == {"critical": 1, "warning": 1, "info": 0}
    critical, warning = sorted(report.lines)
    assert critical.startswith("[critical] expect_column_values_to_not_be_null(column='id'): 1 of 4 rows")
    assert warning.startswith("[warning] expect_column_values_to_be_in_set(")
    assert warning.endswith("1 of 4 rows, for example XXX")


def test_an_expectation_that_cannot_be_checked_is_an_error_of_its_own() -> None:
    missing = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "nowhere"}, "severity": "warning"}

    with pytest.raises(InvalidInputError, match="nowhere"):
        check_expectations(ROWS, [missing])


@pytest.mark.parametrize(
    "expectations",
    [
        [],
        "None",
        [{"kwargs": {}}],
        [{"type": 7}],
        [{"type": "expect_table_row_count_to_equal", "severity": "fatal"}],
        [{"type": "expect_table_row_count_to_equal", "kwargs": {"value": 3}, "severty": "warning"}],
        [{"type": "expect_table_row_count_to_equal", "kwargs": ["value", 3]}],
    ],
)
def test_malformed_expectations_are_refused(expectations: object) -> None:
    with pytest.raises(InvalidInputError):
        check_expectations(ROWS, expectations)


def test_an_unknown_expectation_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="expect_the_unexpected"):
        check_expectations(ROWS, [{"type": "expect_the_unexpected"}])


def test_an_expectation_without_its_arguments_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="column"):
        check_expectations(ROWS, [{"type": "expect_column_values_to_not_be_null"}])
