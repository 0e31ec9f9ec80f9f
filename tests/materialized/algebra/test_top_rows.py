"""The first rows of an order are kept from the stored ones, and computed again only if too few are left."""

from __future__ import annotations

from random import Random

import pytest

from storage_lib.materialized.algebra import SourceTable, compile_query
from tests.materialized.algebra.maintained_answers import MaintainedAnswer
from tests.materialized.algebra.random_queries import TABLES, RandomQueries
from tests.materialized.algebra.small_rows import SmallRows
from tests.support.deep_tests import thinned

T = SourceTable("shop.t", (("a", "INT"), ("b", "INT"), ("s", "STRING"), ("m", "MAP<STRING, INT>")))
# Each with a query whose order is that of all columns, since the engine may choose any of the rows that tie.
GIVEN_AND_EXPECTED = [
    (
        "SELECT cat, amount FROM orders ORDER BY cat LIMIT 4",
        "SELECT cat, amount FROM orders ORDER BY cat, amount LIMIT 4",
    ),
    (
        "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 6",
        "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 6",
    ),
    (
        "SELECT city, count(*) AS n FROM orders GROUP BY city ORDER BY n DESC LIMIT 2",
        "SELECT city, count(*) AS n FROM orders GROUP BY city ORDER BY n DESC, city LIMIT 2",
    ),
    (
        "SELECT city, sum(amount) AS n FROM orders GROUP BY city ORDER BY sum(amount) LIMIT 2",
        "SELECT city, sum(amount) AS n FROM orders GROUP BY city ORDER BY n, city LIMIT 2",
    ),
    (
        "SELECT upper(city) AS u, cat FROM orders ORDER BY upper(city) DESC LIMIT 5",
        "SELECT upper(city) AS u, cat FROM orders ORDER BY u DESC, cat LIMIT 5",
    ),
    (
        "SELECT v, s FROM events ORDER BY v + 1 DESC NULLS FIRST LIMIT 3",
        "SELECT v, s FROM events ORDER BY v DESC NULLS FIRST, s LIMIT 3",
    ),
    ("SELECT v AS s, s AS v FROM events ORDER BY s LIMIT 3", "SELECT v AS x, s AS y FROM events ORDER BY x, y LIMIT 3"),
    ("SELECT DISTINCT v FROM events ORDER BY 1 DESC LIMIT 2", "SELECT DISTINCT v FROM events ORDER BY v DESC LIMIT 2"),
    (
        "SELECT v FROM events UNION ALL SELECT amount FROM orders ORDER BY v LIMIT 7",
        "SELECT * FROM (SELECT v FROM events UNION ALL SELECT amount AS v FROM orders) AS u ORDER BY v LIMIT 7",
    ),
    ("(SELECT v FROM events ORDER BY v DESC) LIMIT 3", "SELECT v FROM events ORDER BY v LIMIT 3"),
    ("(SELECT v FROM events) ORDER BY v DESC LIMIT 3", "SELECT v FROM events ORDER BY v DESC LIMIT 3"),
    ("SELECT v FROM events LIMIT 3", "SELECT v FROM events ORDER BY v LIMIT 3"),
    ("SELECT v FROM events ORDER BY v LIMIT 0", "SELECT v FROM events WHERE FALSE"),
]


@pytest.mark.parametrize(("text", "expected"), GIVEN_AND_EXPECTED, ids=[text for text, _ in GIVEN_AND_EXPECTED])
def test_ties_are_put_in_the_order_of_all_columns(text: str, expected: str) -> None:
    rng = Random(text)  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer(text, TABLES, SmallRows(rng), rng)
    answer.ask_instead(expected)
    answer.start()
    assert answer.rows == answer.expected()
    for _ in range(12):
        answer.change_sources()
        answer.refresh()
        assert answer.rows == answer.expected()


@pytest.mark.parametrize("seed", thinned(range(12), keep=3))
def test_first_rows_of_any_query_stay_those_of_the_query(seed: int) -> None:
    rng = Random(seed)  # noqa: S311  chance, not secrets
    changes = 0
    for _ in range(6):
        answer = _with_rows(rng)
        assert answer.query.reads_result
        for _ in range(6):
            before = answer.rows
            answer.change_sources()
            answer.refresh()
            assert answer.rows == answer.expected(), answer.text
            changes += answer.rows != before
    assert changes >= 3


def _with_rows(rng: Random) -> MaintainedAnswer:
    for _ in range(8):
        answer = MaintainedAnswer(_first_rows(rng), TABLES, SmallRows(rng), rng)
        assert answer.query.is_incremental, (answer.query.reason, answer.text)
        answer.start()
        if answer.rows:
            break
    return answer


def _first_rows(rng: Random) -> str:
    text = RandomQueries(rng).query()
    columns = compile_query(text, TABLES, database="shop").columns
    order = ", ".join(f"{name}{rng.choice(['', ' DESC'])}" for name in rng.sample(columns, len(columns)))
    return f"SELECT * FROM ({text}) AS whole ORDER BY {order} LIMIT {rng.choice([1, 2, 4, 7])}"


def test_input_is_read_again_only_if_too_few_stored_rows_are_left() -> None:
    text = "SELECT id, amount FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 3"
    rng = Random(1)  # noqa: S311  chance, not secrets
    answer = MaintainedAnswer(text, TABLES, SmallRows(rng), rng)
    answer.start()
    missing = []
    for _ in range(60):
        answer.change_sources()
        missing.append(answer.counts_of_shared_rows()[-1])
        answer.refresh()
        assert answer.rows == answer.expected()

    assert set(missing) == {0, 1}
    assert missing.count(0) > missing.count(1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a FROM t ORDER BY b LIMIT 3", "does not hold t.b, by which ORDER BY orders it; select it as well"),
        ("SELECT a, count(*) AS n FROM t GROUP BY a ORDER BY sum(b) LIMIT 3", "does not hold SUM"),
        ("SELECT a FROM t ORDER BY a LIMIT 3 OFFSET 2", "OFFSET skips rows that the answer does not hold"),
        ("SELECT a FROM t OFFSET 2", "OFFSET skips rows that the answer does not hold"),
        ("SELECT a FROM t ORDER BY a LIMIT 1 + 1", "whole number"),
        ("SELECT a FROM t ORDER BY a LIMIT 10001", "more than 10000 rows"),
        ("SELECT a, m FROM t ORDER BY a LIMIT 2", "column m has a type without an order"),
        ("SELECT a, (SELECT max(b) FROM t LIMIT 0) AS x FROM t", "LIMIT of a scalar sub-query"),
        ("SELECT a FROM t x WHERE EXISTS (SELECT 1 FROM t y WHERE y.a = x.b LIMIT 1)", "reads a column of an outer"),
        ("SELECT a FROM t ORDER BY rand(), a LIMIT 2", "differs from run to run"),
        ("SELECT a, b FROM t ORDER BY (2) LIMIT 4", "name the column"),
        ("SELECT a, b FROM t ORDER BY ALL LIMIT 4", "reads no column of the answer"),
        ("SELECT NULL AS x FROM t UNION ALL SELECT m FROM t LIMIT 3", "column x has a type without an order"),
        ("SELECT a, parse_json(s) AS x FROM t ORDER BY a LIMIT 3", "column x has a type without an order"),
        ("(SELECT a FROM t) WHERE a > 3 LIMIT 2", "WHERE after a query in parentheses"),
        ("SELECT a, sum(CAST(b AS DOUBLE)) AS n FROM t GROUP BY a, s ORDER BY n LIMIT 2", "last digits"),
    ],
)
def test_what_the_stored_rows_cannot_tell_is_computed_in_full(text: str, reason: str) -> None:
    assert reason in str(compile_query(text, [T], database="shop").reason)


def test_a_limit_around_a_query_in_parentheses_is_kept() -> None:
    for text in ("(SELECT a FROM t) LIMIT 2", "SELECT a FROM t WHERE a IN ((SELECT b FROM t) LIMIT 2)"):
        query = compile_query(text, [T], database="shop")
        assert "LIMIT 2" in query.full(lambda name, moment: name), text
