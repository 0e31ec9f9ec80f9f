"""Every statement that needs Spark, in text files, with its result or its error. See ``tests/support/sql_cases.py``.

`pytest tests/sql --rewrite-sql-cases` stores the current results; review the diff before you commit it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.sql_cases import FOLDER, REWRITE, SqlCase, load_sql_cases, steps_given, write_steps_given

if TYPE_CHECKING:
    from storage_lib.sql import Session

CASES = [case for file in sorted(FOLDER.glob("*.sql")) for case in load_sql_cases(file.name)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_case_gives_what_the_file_says(
    case: SqlCase, sql: Session, warehouse: str, request: pytest.FixtureRequest
) -> None:
    steps = steps_given(case, sql, warehouse)
    if request.config.getoption(REWRITE):
        write_steps_given(case, steps)
        return
    assert [(step.statement, step.expected) for step in steps] == [
        (step.statement, step.expected) for step in case.steps
    ]


def test_no_two_cases_of_a_file_have_one_name() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
