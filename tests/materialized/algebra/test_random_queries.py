"""Answers that are maintained from changes equal the answers of the queries, on DuckDB.

Most statements are written with Spark's types, as those of small refreshes are.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.materialized.algebra.maintained_answers import MaintainedAnswer
from tests.materialized.algebra.random_queries import TABLES, RandomQueries
from tests.materialized.algebra.small_rows import SmallRows
from tests.support.deep_tests import thinned

QUERIES = 12
REFRESHES = 4


@pytest.mark.parametrize("seed", thinned(range(40), keep=5))
def test_a_maintained_answer_equals_the_query_after_every_refresh(seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not secrets
    changes = 0
    for _ in range(QUERIES):
        answer = _with_rows(rng)
        assert answer.rows == answer.expected(), answer.text
        for number in range(REFRESHES):
            before = answer.rows
            answer.change_sources()
            answer.refresh(may_read_result=number % 2 == 0)
            assert answer.rows == answer.expected(), answer.text
            assert not answer.violates_key(), answer.text
            changes += answer.rows != before
    # Otherwise the comparisons above would prove little.
    assert changes >= QUERIES


def _with_rows(rng: Random) -> MaintainedAnswer:
    """Return a query that answers with rows, as nearly all do after a few draws; an empty answer proves little."""
    for attempt in range(8):
        answer = MaintainedAnswer(RandomQueries(rng).query(), TABLES, SmallRows(rng), rng)
        assert answer.query.is_incremental, (answer.query.reason, answer.text)
        if attempt % 2 == 0:
            answer.write_exactly()
        answer.start()
        assert answer.rows == answer.expected(), answer.text
        if answer.rows:
            break
    return answer
