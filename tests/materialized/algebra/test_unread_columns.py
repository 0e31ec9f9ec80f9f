"""Queries that read no column of a part of them, only the number of its rows."""

from __future__ import annotations

from random import Random

import pytest

from tests.materialized.algebra.maintained_answers import MaintainedAnswer
from tests.materialized.algebra.random_queries import TABLES
from tests.materialized.algebra.small_rows import SmallRows
from tests.support.deep_tests import crossed

PARTS = [
    "SELECT cat FROM orders",
    "SELECT cat FROM orders UNION ALL SELECT k FROM events",
    "SELECT cat FROM orders UNION ALL SELECT NULL FROM events",
    "SELECT cat FROM orders UNION SELECT k FROM events",
    "SELECT cat FROM orders EXCEPT SELECT k FROM events",
    "SELECT DISTINCT cat FROM orders",
    "SELECT count(*) AS n FROM orders",
    "SELECT count(*) AS n FROM orders HAVING count(*) > 3",
    "SELECT 1 AS one FROM orders HAVING count(*) > 3",
    "SELECT 1 AS one FROM orders WHERE id < 0 HAVING true",
    "SELECT cat, count(*) AS n FROM orders GROUP BY cat",
    "SELECT 1 AS one FROM orders GROUP BY cat, city",
    "SELECT cat FROM orders ORDER BY cat LIMIT 3",
    "SELECT sum(amount) OVER (PARTITION BY cat) AS n FROM orders",
    "SELECT 1 AS one FROM orders, events",
    "SELECT k FROM events LEFT JOIN orders ON k = cat",
    "SELECT k FROM events FULL JOIN orders ON k = cat",
    "SELECT k FROM events WHERE k IN (SELECT cat FROM orders)",
    "SELECT k FROM events WHERE EXISTS (SELECT 1 FROM orders WHERE k = cat)",
]
AROUND = {
    "count": "SELECT count(*) AS n FROM ({part}) AS p",
    "constant": "SELECT 7 AS seven FROM ({part}) AS p",
    "exists": "SELECT id FROM orders WHERE EXISTS (SELECT 1 FROM ({part}) AS p)",
    "not exists": "SELECT id FROM orders WHERE NOT EXISTS (SELECT 1 FROM ({part}) AS p)",
    "cross join": "SELECT o.id FROM orders AS o, ({part}) AS p",
    "union": "SELECT 1 AS a FROM ({part}) AS p UNION ALL SELECT id FROM orders",
}


@pytest.mark.parametrize(("part", "around"), crossed(PARTS, AROUND))
def test_the_answer_is_that_of_the_query_after_every_refresh(part: str, around: str) -> None:
    rng = Random(f"{part} {around}")  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer(AROUND[around].format(part=part), TABLES, SmallRows(rng), rng)
    if not answer.query.is_incremental:
        pytest.skip(str(answer.query.reason))
    answer.start()
    assert answer.rows == answer.expected()
    for _ in range(8):
        answer.change_sources()
        answer.refresh()
        assert answer.rows == answer.expected(), answer.text
