"""Regular expressions of a form are evaluated by RE2, in linear time."""

from __future__ import annotations

import json
import random
import re
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dynamic_table.quality.data_quality import check_expectations, checked_expectations, unmet_rows
from dynamic_table.quality.expectation_suites import expectations_of
from dynamic_table.quality.linear_regex import RE2, REGEX_SYNTAX
from dynamic_table.quality.row_expectations import row_check
from storage_lib.errors import InvalidInputError

if TYPE_CHECKING:
    from pathlib import Path

# Great Expectations imports deprecated names
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

EXPONENTIAL = "^(a+)+$"
NO_MATCH = "a" * 60 + "!"


def regex(kind: str, severity: str = "critical", **given: Any) -> dict[str, Any]:
    return {"type": f"expect_column_values_to_{kind}", "kwargs": {"column": "v", **given}, "severity": severity}


def test_an_expression_that_backtracks_for_ever_is_linear_in_a_form(tmp_path: Path) -> None:
    """Python would need 2^60 steps for one value."""
    rows = pa.table({"v": [NO_MATCH, "aa", None]})
    given = expectations_of(
        [
            regex("match_regex", regex=EXPONENTIAL),
            regex("not_match_regex", regex=EXPONENTIAL),
            regex("match_regex_list", regex_list=[EXPONENTIAL, "!"], match_on="all"),
            regex("match_regex_list", regex_list=[EXPONENTIAL, "!"]),
            regex("not_match_regex_list", regex_list=[EXPONENTIAL, "b"]),
        ],
        "db.t",
        tmp_path,
    )

    report = check_expectations(rows, given)

    counts = [line.partition(": ")[2].split(",")[0] for line in report.lines]
    assert counts == ["1 of 3 rows", "1 of 3 rows", "2 of 3 rows", "1 of 3 rows"]


def test_rows_are_refused_by_the_expressions_of_a_form_in_linear_time(tmp_path: Path) -> None:
    given = expectations_of([regex("match_regex", "reject", regex=EXPONENTIAL)], "db.t", tmp_path)
    # A sink gets its expectations as plain data.
    check = row_check(json.loads(json.dumps(given)))

    assert check is not None
    assert list(check(pa.table({"v": ["aa", NO_MATCH, "a"]}))) == [1]


def test_python_and_re2_agree_on_random_expressions(tmp_path: Path) -> None:
    """Of letters, classes, repetitions and alternatives, on random texts."""
    chance = random.Random(8)  # noqa: S311  repeatable
    parts = ("a", "b", "[ab]", "[^a]", "(a|bb)", "a*", "b+", "(ab)?", ".", "^", "$", "a{2}", "(?:b|)", r"\d", r"\w")
    texts = ["".join(chance.choices("ab1 -", k=chance.randint(0, 8))) for _ in range(40)]
    expressions = ["".join(chance.choices(parts, k=chance.randint(1, 4))) for _ in range(20)]
    given = [regex("match_regex", "reject", regex=each) for each in expressions]

    unmet = unmet_rows(pa.table({"v": texts}), checked_expectations(expectations_of(given, "db.t", tmp_path)))

    for expression, places in zip(expressions, unmet, strict=True):
        assert places == [place for place, text in enumerate(texts) if re.search(expression, text) is None], expression


@pytest.mark.parametrize("expression", ["(?<!a)b", "(?=a)", r"(a)\1", "(", "a{1000}{1000}", "a\ud800", None, 3])
def test_a_form_takes_only_expressions_of_re2(tmp_path: Path, expression: object) -> None:
    for given in (
        regex("match_regex", regex=expression),
        regex("not_match_regex_list", regex_list=["a", expression]),
    ):
        if expression is None and "regex" in given["kwargs"]:
            continue  # not given
        with pytest.raises(InvalidInputError, match="not allowed from a form"):
            expectations_of([given], "db.t", tmp_path)


def test_the_log_says_nothing_of_how_they_are_evaluated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sys.modules.pop("dynamic_table.quality.linear_metrics", None)

    check_expectations(pa.table({"v": ["a"]}), expectations_of([regex("match_regex", regex="a")], "db.t", tmp_path))

    assert [record.getMessage() for record in caplog.records if "metric" in record.getMessage()] == []


def test_a_file_of_the_authors_may_have_every_expression(tmp_path: Path) -> None:
    given = [regex("match_regex", regex="(?<!a)b")]
    (tmp_path / "authors.json").write_text(json.dumps(given))
    rows = pa.table({"v": ["cb", "ab"]})

    found = expectations_of("authors.json", "db.t", tmp_path)

    assert found == given
    assert "1 of 2 rows" in check_expectations(rows, found).lines[0]
    with pytest.raises(InvalidInputError, match="regex_syntax 'perl'"):
        checked_expectations([{**given[0], REGEX_SYNTAX: "perl"}])


def test_spark_does_not_evaluate_expressions_of_a_form(tmp_path: Path) -> None:
    given = expectations_of([regex("match_regex", regex="a")], "db.t", tmp_path)
    frame: Any = object()  # any rows that are not Arrow's

    assert given[0][REGEX_SYNTAX] == RE2
    with pytest.raises(InvalidInputError, match="can't be checked by Spark"):
        check_expectations(frame, given)
