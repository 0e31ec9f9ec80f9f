"""The page of versions shows what the tests have seen, and the package admits no other version."""

from __future__ import annotations

import tomllib

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark.versions.fitting_spark import SPARK_VERSIONS
from tests.versions.seen_versions import CHECKOUT, PAGE, FailedRunError, load, locked_release, page, results_of

REPORT = '<testsuites><testsuite name="pytest">{cases}</testsuite></testsuites>'
PASSED = "".join(
    f'<testcase classname="tests.{each}.test_x" name="test_y"/>' for each in ("spark", "sql", "materialized")
)


def test_the_page_shows_the_recorded_results() -> None:
    assert PAGE.read_text() == page(load()), "run `python -m tests.versions.seen_versions`"


def test_the_package_admits_the_versions_that_the_tests_have_seen() -> None:
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    bounds = {
        line.partition("]")[2] or line.removeprefix("pyspark")
        for extra in extras.values()
        for line in extra
        if line.startswith("pyspark")
    }

    (major, oldest), (_, newest) = SPARK_VERSIONS[0], SPARK_VERSIONS[-1]
    assert bounds == {f">={major}.{oldest},<{major}.{newest + 1}"}
    assert [".".join(map(str, version)) for version in SPARK_VERSIONS] == sorted([*load(), locked_release()[:3]])


def test_a_run_counts_its_tests_by_folder() -> None:
    skipped = '<testcase classname="tests.sql.test_x" name="test_z"><skipped message="no server"/></testcase>'

    assert results_of(REPORT.format(cases=PASSED), REPORT.format(cases=PASSED + skipped)) == {
        "whole": True,
        "passed": {"spark": 1, "sql": 1, "materialized": 1},
        "skipped": 1,
    }


@pytest.mark.parametrize("kind", ["failure", "error"])
def test_a_run_with_a_failed_test_is_not_recorded(kind: str) -> None:
    failed = f'<testcase classname="tests.sql.test_x" name="test_z"><{kind} message="wrong"/></testcase>'

    with pytest.raises(FailedRunError, match=r"tests\.sql\.test_x\.test_z has failed"):
        results_of(REPORT.format(cases=PASSED + failed))


def test_a_run_of_a_part_is_recorded_as_such() -> None:
    part = REPORT.format(cases=PASSED.rpartition("<")[0])

    with pytest.raises(FailedRunError, match="no test of tests/materialized has passed"):
        results_of(part)
    assert results_of(part, whole=False) == {
        "whole": False,
        "passed": {"spark": 1, "sql": 1, "materialized": 0},
        "skipped": 0,
    }
