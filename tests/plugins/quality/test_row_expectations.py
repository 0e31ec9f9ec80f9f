"""Expectations of severity ``reject`` judge rows one by one, with exact values, and name them by position."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dynamic_table.quality.data_quality import check_expectations
from dynamic_table.quality.row_expectations import row_check, row_checks
from storage_lib.errors import InvalidInputError

# Great Expectations imports deprecated names
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

BIG = 2**53
ROWS = pa.table(
    {
        "id": pa.array([1, None, BIG + 1, BIG], pa.int64()),
        "origin": ["EWR", None, "XXX", "LGA"],
        "price": pa.array([Decimal("1.10"), Decimal("-0.01"), None, Decimal("3.00")], pa.decimal128(10, 2)),
    }
)


def expectation(kind: str, severity: str = "reject", **arguments: Any) -> dict[str, Any]:
    return {"type": f"expect_{kind}", "kwargs": arguments, "severity": severity}


def test_each_row_that_does_not_meet_one_is_named_with_the_column_and_the_value() -> None:
    check = row_check(
        [
            expectation("column_values_to_be_in_set", column="origin", value_set=["EWR", "LGA"]),
            expectation("column_values_to_be_between", column="price", min_value=0),
            expectation("column_values_to_not_be_null", column="id"),
            expectation("table_row_count_to_equal", "critical", value=1),
        ]
    )

    assert check is not None
    assert check(ROWS) == {
        1: ("price", "it does not meet expect_column_values_to_be_between(column='price', min_value=0): '-0.01'"),
        2: (
            "origin",
            "it does not meet expect_column_values_to_be_in_set(column='origin', value_set=['EWR', 'LGA']): 'XXX'",
        ),
    }


def test_whole_numbers_are_compared_exactly_beside_nulls() -> None:
    check = row_check([expectation("column_values_to_be_between", column="id", max_value=BIG)])

    assert check is not None
    assert [*check(ROWS)] == [2]


def test_without_such_an_expectation_there_is_no_check() -> None:
    assert row_check([expectation("column_values_to_not_be_null", "warning", column="id")]) is None


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (expectation("column_mean_to_be_between", column="id", max_value=1), "does not judge each row by itself"),
        (expectation("column_values_to_be_unique", column="id"), "does not judge each row by itself"),
        (expectation("column_values_to_be_null", column="id", mostly=0.5), "leave mostly out"),
        (expectation("column_values_to_be_null", "refuse", column="id"), "use one of critical, warning, info, reject"),
    ],
)
def test_an_expectation_that_can_not_refuse_single_rows_is_refused(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        row_check([wrong])


def test_each_table_of_a_sync_has_expectations_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "prices.yaml").write_text(
        "- {type: expect_column_values_to_be_between, kwargs: {column: price, min_value: 0}, severity: reject}"
    )
    known = expectation("column_values_to_be_in_set", column="origin", value_set=["EWR", "LGA"])

    checks = row_checks({"shop.items": "prices.yaml", "shop.flights": [known]}, tmp_path)

    assert {table: [*check(ROWS)] for table, check in checks.items()} == {"shop.items": [1], "shop.flights": [2]}
    with pytest.raises(InvalidInputError, match=r"shop\.items: none of the expectations has severity reject"):
        row_checks({"shop.items": [{**known, "severity": "warning"}]}, tmp_path)


def test_a_column_that_is_not_there_is_an_error_and_not_a_refused_row() -> None:
    check = row_check([expectation("column_values_to_not_be_null", column="nowhere")])

    assert check is not None
    with pytest.raises(InvalidInputError, match="nowhere"):
        check(ROWS)


def test_in_a_stored_table_such_an_expectation_is_critical() -> None:
    report = check_expectations(ROWS, [expectation("column_values_to_be_between", column="price", min_value=0)])

    assert report.failed == {"critical": 1, "warning": 0, "info": 0}


def test_rows_are_the_same_ones_that_a_comparison_of_our_own_finds() -> None:
    chance = random.Random(7)  # noqa: S311  reproducible
    values = [chance.choice((None, chance.randint(-5, 5))) for _ in range(200)]
    check = row_check([expectation("column_values_to_be_between", column="n", min_value=-1, max_value=3)])

    assert check is not None
    found = check(pa.table({"n": pa.array(values, pa.int32())}))

    assert sorted(found) == [place for place, value in enumerate(values) if value is not None and not -1 <= value <= 3]
