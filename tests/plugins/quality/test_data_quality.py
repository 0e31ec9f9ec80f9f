"""Expectations as plain data, results as readable lines."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from dynamic_table.quality.data_docs import DataDocs
from dynamic_table.quality.data_quality import check_expectations
from dynamic_table.quality.expectation_suites import expectations_of
from dynamic_table.quality.listed_expectations import _LISTED
from storage_lib.errors import InvalidInputError

# Great Expectations imports deprecated names
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


CODE = [
    {"row_condition": "@pd.compat.os.system('touch {done}') == 0", "condition_parser": "pandas"},
    {"row_condition": "id > 1", "condition_parser": "spark"},
    {"row_condition": {"type": "pass_through", "pass_through_filter": "id.to_csv('{done}')"}},
    {
        "row_condition": {
            "type": "comparison",
            "column": {"name": "@pd.compat.os.system('touch {done}')"},
            "operator": "==",
            "parameter": 0,
        }
    },
    {"unexpected_rows_query": "ADD JAR 'x.jar'"},
    {"base_query": "SELECT reflect('a', 'b')"},
    {"column_list": ["id", "0) + reflect('java.lang.System', 'exit', 1"]},
]


@pytest.mark.parametrize("kwargs", CODE)
def test_expectations_of_a_form_hold_no_code(tmp_path: Path, kwargs: dict[str, object]) -> None:
    done = tmp_path / "done"
    filled = json.loads(json.dumps(kwargs).replace("{done}", str(done)))
    given = [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "id", **filled}}]

    with pytest.raises(InvalidInputError, match="not allowed from a form"):
        expectations_of(given, "db.t", tmp_path)
    (tmp_path / "authors.json").write_text(json.dumps(given))
    assert expectations_of("authors.json", "db.t", tmp_path) == given
    assert not done.exists()


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("expect_column_values_to_match_json_schema", {"column": "id", "json_schema": {"$ref": "file:///etc/passwd"}}),
        ("expect_column_values_to_match_json_schema", {"column": "id", "json_schema": {}}),
        ("expect_query_results_to_match_comparison", {"base_query": "SELECT 1", "comparison_query": "SELECT 1"}),
        ("unexpected_rows_expectation", {"unexpected_rows_query": "SELECT 1"}),
        ("expect_table_row_count_to_equal_other_table", {"other_table_name": "db.secret"}),
        ("expect_column_values_to_be_between", {"column": "id", "min_value": {"$PARAMETER": "urn:x"}}),
        ("expect_column_values_to_be_in_set", {"column": "id", "value_set": {"$PARAMETER": "urn:x"}}),
        ("expect_column_values_to_be_of_type", {"column": "id", "type_": "__import__('os')"}),
        ("expect_column_values_to_not_be_null", {"column": "id", "condition_parser": "pandas"}),
        ("expect_column_values_to_not_be_null", {"column": "id", "result_format": {"x": 1}}),
        ("expect_something_of_a_later_release", {"column": "id"}),
    ],
)
def test_a_form_names_listed_expectations_and_arguments_only(
    tmp_path: Path, name: str, kwargs: dict[str, object]
) -> None:
    given = [{"type": name, "kwargs": kwargs}]

    with pytest.raises(InvalidInputError, match="not allowed from a form"):
        expectations_of(given, "db.t", tmp_path)


def test_every_listed_expectation_and_argument_is_one_of_great_expectations() -> None:
    import great_expectations.expectations.core  # noqa: F401  it registers them
    from great_expectations.expectations.registry import get_expectation_impl

    unknown = {
        name: arguments.keys() - get_expectation_impl(name).__fields__.keys() for name, arguments in _LISTED.items()
    }

    assert {name: arguments for name, arguments in unknown.items() if arguments} == {}


def test_expectations_of_a_form_that_only_compare_are_taken(tmp_path: Path) -> None:
    given = [
        {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "origin", "value_set": ["(EWR)", "J@K"]}},
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "a b", "regex": r"^(\w+)$"}},
    ]

    assert expectations_of(given, "db.t", tmp_path) == [given[0], {**given[1], "regex_syntax": "re2"}]


def test_a_file_of_expectations_lies_in_the_folder_of_the_dag(tmp_path: Path) -> None:
    folder, outside = tmp_path / "dags", tmp_path / "elsewhere.json"
    folder.mkdir()
    outside.write_text(json.dumps([{"type": "unexpected_rows_expectation"}]))

    for named in (str(outside), "../elsewhere.json"):
        with pytest.raises(InvalidInputError, match="outside of the DAG's folder"):
            expectations_of(named, "db.t", folder)
    for named in ("a\0b", "\0", "a" * 5000, "b.json"):
        with pytest.raises(InvalidInputError, match=r"not the name of a file|does not exist"):
            expectations_of(named, "db.t", folder)


def test_values_that_spell_a_variable_or_a_store_are_compared_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier releases of Great Expectations resolved such texts, from the environment and from its stores."""
    monkeypatch.setenv("PLANTED", "planted-value")
    texts = ["$PLANTED", "${PLANTED}", "urn:great_expectations:validations:a:b", "urn:great_expectations:stores:a:b"]
    specs = [{"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "text", "value_set": texts}}]

    report = check_expectations(
        pa.table({"text": texts}), specs, docs=DataDocs(root=tmp_path, table="shop.orders"), run_name="a"
    )

    assert report.failed == {"critical": 0, "warning": 0, "info": 0}
    for text in texts:
        with pytest.raises(InvalidInputError, match="can't be checked with"):
            check_expectations(
                pa.table({"id": [1]}),
                [{"type": "expect_column_max_to_be_between", "kwargs": {"column": "id", "min_value": text}}],
            )
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert not any(b"planted-value" in each for each in stored)
