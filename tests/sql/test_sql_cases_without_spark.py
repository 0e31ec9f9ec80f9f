"""Statements that are done or refused before Spark plans anything, in text files, by a session whose Spark is not used.

`pytest tests/sql --rewrite-sql-cases` stores the current results; review the diff before you commit it.
"""

from __future__ import annotations

import pytest

from storage_lib import open_catalog
from tests.support.sql_cases import FOLDER, REWRITE, SqlCase, load_sql_cases, steps_given, write_steps_given
from tests.support.sql_without_spark import session_without_spark

CASES = [
    case for file in sorted(FOLDER.glob("without_spark/*.sql")) for case in load_sql_cases(f"without_spark/{file.name}")
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_gives_what_the_file_says(
    case: SqlCase, warehouse: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    with session_without_spark(open_catalog(warehouse), monkeypatch) as session:
        steps = steps_given(case, session, warehouse)
    if request.config.getoption(REWRITE):
        write_steps_given(case, steps)
        return
    assert [(step.statement, step.expected) for step in steps] == [
        (step.statement, step.expected) for step in case.steps
    ]


def test_a_statement_that_needs_spark_is_found(warehouse: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_without_spark(open_catalog(warehouse), monkeypatch)

    with pytest.raises(AssertionError, match=r"Spark's \w+ is used"):
        session.execute("SELECT 1")


def test_no_two_cases_of_a_file_have_one_name() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
