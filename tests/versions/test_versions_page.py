"""The page of versions shows what the tests have seen, and the package admits no other version."""

from __future__ import annotations

import re
import tomllib
from itertools import takewhile

import pytest

pytest.importorskip("dynamic_table")
pytest.importorskip("pyspark")

from tests.versions.seen_versions import (
    AIRFLOW,
    CHECKOUT,
    PAGE,
    SPARK,
    FailedRunError,
    Subject,
    load,
    page,
    results_of,
)

REPORT = '<testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
PASSED = "".join(
    f'<testcase classname="tests.{each}.test_x" name="test_y"/>' for each in ("spark", "sql", "materialized")
)


def test_the_page_shows_the_recorded_results() -> None:
    assert PAGE.read_text() == page(load()), "run `python -m tests.versions.seen_versions`"


def bounds(subject: Subject) -> set[str]:
    """Return the ranges of versions in pyproject.toml."""
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return {
        line.partition("]")[2] or line.removeprefix(subject.requirement)
        for extra in extras.values()
        for line in extra
        if re.match(rf"{subject.requirement}[\[=<>]", line)
    }


def test_the_package_admits_the_versions_of_spark_that_the_tests_have_seen() -> None:
    """The extras install none that is on trial."""
    installed = [version for version in SPARK.admitted if version not in SPARK.on_trial]
    (major, oldest), (_, newest) = installed[0], installed[-1]
    assert bounds(SPARK) == {f">={major}.{oldest},<{major}.{newest + 1}"}
    seen = {*load()["spark"], SPARK.locked_release()[:3]}
    assert {".".join(map(str, version)) for version in installed} <= seen <= set(SPARK.versions)


def test_the_extra_admits_the_versions_of_airflow_on_which_all_tests_have_passed() -> None:
    """The extra neither installs nor accepts a version on trial, nor two whose asset watchers report nothing.

    A pre-release is on trial whatever has passed on it: its version may still change.
    """
    is_released = re.compile(r"[\d.]+").fullmatch
    seen = {name: each for name, each in load()["airflow"].items() if each["whole"] and is_released(each["release"])}
    at = AIRFLOW.versions.index(AIRFLOW.locked_release().rpartition(".")[0])
    older = takewhile(seen.__contains__, reversed(AIRFLOW.versions[:at]))
    newer = takewhile(seen.__contains__, AIRFLOW.versions[at + 1 :])
    *_, oldest = AIRFLOW.locked_release(), *(seen[version]["release"] for version in older)
    *_, (major, newest) = AIRFLOW.admitted[at], *(AIRFLOW.admitted[AIRFLOW.versions.index(each)] for each in newer)

    assert bounds(AIRFLOW) == {f">={oldest},!=3.3.0,!=3.3.1,<{major}.{newest + 1}"}


def test_a_run_counts_its_tests_by_folder() -> None:
    skipped = '<testcase classname="tests.sql.test_x" name="test_z"><skipped message="no server"/></testcase>'

    assert results_of(SPARK, REPORT.format(cases=PASSED), REPORT.format(cases=PASSED + skipped)) == {
        "whole": True,
        "passed": {"spark": 1, "sql": 1, "materialized": 1},
        "skipped": 1,
    }


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_a_run_with_a_failed_test_is_not_recorded(kind: str) -> None:
    failed = f'<testcase classname="tests.sql.test_x" name="test_z"><{kind} message="wrong"/></testcase>'

    with pytest.raises(FailedRunError, match=r"tests\.sql\.test_x\.test_z has failed"):
        results_of(SPARK, REPORT.format(cases=PASSED + failed))


def test_a_failed_test_that_was_repeated_counts_with_its_last_result() -> None:
    failed = REPORT.format(cases=PASSED.replace("/>", '><failure message="slow"/></testcase>', 1))

    assert results_of(SPARK, failed, REPORT.format(cases=PASSED)) == results_of(SPARK, REPORT.format(cases=PASSED))
    with pytest.raises(FailedRunError, match=r"tests\.spark"):
        results_of(SPARK, REPORT.format(cases=PASSED), failed)


def test_a_run_is_counted_by_the_folders_of_its_subject() -> None:
    cases = "".join(f'<testcase classname="tests.{each}.test_x" name="test_y"/>' for each in ("plugins", "dags"))

    assert results_of(AIRFLOW, REPORT.format(cases=cases))["passed"] == {"plugins": 1, "dags": 1}


def test_a_run_of_a_part_is_recorded_as_such() -> None:
    part = REPORT.format(cases=PASSED.rpartition("<")[0])

    with pytest.raises(FailedRunError, match="no test of tests/materialized has passed"):
        results_of(SPARK, part)
    assert results_of(SPARK, part, whole=False) == {
        "whole": False,
        "passed": {"spark": 1, "sql": 1, "materialized": 0},
        "skipped": 0,
    }
