"""The queries of TPC-H, maintained over small random tables, equal their answers, on DuckDB."""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.tpch_work.tpch_tables import queries
from tests.materialized.algebra.maintained_answers import MaintainedAnswer
from tests.materialized.algebra.tpch_rows import TABLES, TpchRows

QUERIES = queries(0.01)
WITH_FIRST_ROWS = {"Q02", "Q03", "Q10", "Q18", "Q21"}
WITH_QUOTIENTS = {"Q01", "Q11", "Q14", "Q17"}
"""Their decimals are rounded, or DuckDB's own averages and quotients are not decimals."""

# Wider conditions, which some of a few rows meet, and limits that leave some of them out.
WIDER = {
    "p_size = 15": "p_size > 5",
    "LIKE '%BRASS'": "LIKE '%'",
    "sum(l_quantity) > 300": "sum(l_quantity) > 30",
    "LIMIT 100": "LIMIT 3",
    "LIMIT 20": "LIMIT 3",
    "LIMIT 10": "LIMIT 3",
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_maintained_query_of_tpch_equals_its_answer_after_every_refresh(name: str) -> None:
    rng = Random(f"{name} 4")  # noqa: S311  chance, not secrets
    text = QUERIES[name]
    if name in WITH_FIRST_ROWS:
        for given, wider in WIDER.items():
            text = text.replace(given, wider)
    answer = MaintainedAnswer(text, TABLES, TpchRows(rng), rng)
    if name in WITH_FIRST_ROWS:
        before, limit = text.split("LIMIT")
        # Rows that tie are put in the order of the other columns.
        answer.ask_instead(f"{before}, {', '.join(answer.query.columns)} LIMIT {limit}")
    assert answer.query.is_incremental, answer.query.reason
    if name not in WITH_QUOTIENTS:
        answer.write_exactly()
    answer.start()
    found = 0
    for _ in range(6):
        answer.change_sources()
        assert max(answer.counts_of_shared_rows(), default=0) <= answer.source_row_count, "no join lacks its condition"
        answer.refresh()
        expected = answer.expected()
        assert answer.rows == expected
        found += any(value is not None for row in expected for value in row)
    assert found
