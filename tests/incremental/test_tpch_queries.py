"""The queries of TPC-H, maintained over small random tables, equal their answers, on DuckDB."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.tpch_work.tpch_tables import queries
from tests.incremental.maintained_answers import MaintainedAnswer
from tests.incremental.tpch_rows import TABLES, TpchRows

QUERIES = queries(0.01)
IN_FULL = {"Q02", "Q03", "Q10", "Q18", "Q21"}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_maintained_query_of_tpch_equals_its_answer_after_every_refresh(name: str) -> None:
    rng = Random(f"{name} 4")  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer(QUERIES[name], TABLES, TpchRows(rng), rng)

    if name in IN_FULL:
        assert answer.query.reason == "LIMIT keeps rows by an order of all rows"
        return
    assert answer.query.is_incremental, answer.query.reason
    answer.start()
    found = 0
    for _ in range(6):
        answer.change_sources()
        answer.refresh()
        expected = answer.expected()
        assert answer.rows == expected
        found += any(value is not None for row in expected for value in row)
    assert found
