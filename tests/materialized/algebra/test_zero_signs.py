"""Functions that tell 0.0 from -0.0, which the change of an answer does not, are computed in full."""

from __future__ import annotations

import pytest

from storage_lib.materialized.algebra import SourceTable, compile_query

T = SourceTable(
    "db.t",
    (
        ("a", "INT"),
        ("f", "DOUBLE"),
        ("g", "FLOAT"),
        ("c", "STRING"),
        ("d", "DECIMAL(10,2)"),
        ("n", "STRUCT<x: DOUBLE>"),
    ),
)
TELLING = [
    "CAST(f AS STRING)",
    "CAST(round(f, 2) AS STRING)",
    "CAST(-f AS STRING)",
    "CAST(a / -3 AS STRING)",
    "CAST(max(f) AS STRING)",
    "c IN (f, g)",
    "CAST(n.x AS STRING)",
    "CAST(n AS STRING)",
    "concat(c, f)",
    "concat_ws(',', c, f)",
    "c || f",
    "CASE WHEN a = 1 THEN f ELSE c END",
    "coalesce(f, 'x')",
    "to_json(n)",
    "format_number(f, 2)",
    "atan2(f, g)",
    "pow(f, a)",
    "length(coalesce(CAST(g AS STRING), ''))",
    "hash(f)",
]
BLIND = [
    "f",
    "f + 1",
    "f * g / 2",
    "-f",
    "CASE WHEN f > 0 THEN f ELSE 0.0 END",
    "if(f > 1, f, g)",
    "coalesce(f, 0)",
    "nvl(f, g)",
    "least(f, g)",
    "max(f)",
    "count(DISTINCT f)",
    "percentile(f, 0.5)",
    "CAST(f AS DECIMAL(10, 2))",
    "CAST(CAST(f AS DECIMAL(10, 2)) AS STRING)",
    "CAST(f + 0.0 AS STRING)",
    "CAST(f > 0 AS STRING)",
    "CAST(a / 3 AS STRING)",
    "CAST(avg(a) AS STRING)",
    "CAST(CAST(a AS DOUBLE) AS STRING)",
    "CASE f WHEN 1 THEN 'a' ELSE 'b' END",
    "if(isnull(f), 'a', 'b')",
    "nvl2(f, 'a', 'b')",
    "CAST(a * 1.5 AS STRING)",
    "CAST(sum(d) AS STRING)",
    "CAST(a AS STRING)",
    "format_number(d, 2)",
    "round(f, 2)",
    "pow(f, 2)",
    "sqrt(f)",
    "isnan(f)",
    "f IN (1, 2)",
    "f BETWEEN 1 AND 2",
    "n.x",
    "struct(f, a)",
    "CAST(f AS FLOAT)",
]


def reason(text: str) -> str | None:
    return compile_query(text, [T], database="db").reason


@pytest.mark.parametrize("value", TELLING)
def test_a_function_that_tells_zeros_apart_is_computed_in_full(value: str) -> None:
    assert "tells 0.0 from -0.0" in str(reason(f"SELECT {value} AS x FROM t"))


@pytest.mark.parametrize("value", BLIND)
def test_a_function_that_takes_them_for_one_value_is_maintained(value: str) -> None:
    assert reason(f"SELECT {value} AS x FROM t") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE CAST(f AS STRING) = '0.0'",
        "SELECT x.a FROM t x JOIN t y ON x.c = CAST(y.f AS STRING)",
        "SELECT x.a FROM t x LEFT JOIN t y ON x.c = CAST(y.f AS STRING)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t y WHERE y.c = CAST(t.f AS STRING))",
        "SELECT count(*) AS n FROM t GROUP BY CAST(f AS STRING)",
        "SELECT CAST(m AS STRING) AS s FROM (SELECT max(f) AS m FROM t GROUP BY a)",
        "SELECT CAST(m AS STRING) AS s FROM (SELECT f AS m FROM t UNION ALL SELECT g FROM t)",
        "SELECT CAST(m AS STRING) AS s FROM (SELECT lag(f) OVER (PARTITION BY a ORDER BY c) AS m FROM t)",
        "SELECT c, f FROM t ORDER BY CAST(f AS STRING) LIMIT 3",
        "SELECT count(*) AS n FROM t GROUP BY a HAVING concat(max(f), 'x') > 'a'",
        "SELECT sum(a) OVER (PARTITION BY CAST(f AS STRING)) AS s FROM t",
    ],
)
def test_it_is_found_in_every_part_of_a_query(text: str) -> None:
    assert "tells 0.0 from -0.0" in str(reason(text))


def test_the_reason_is_in_the_words_of_the_query_and_says_what_to_do() -> None:
    assert reason("SELECT upper(concat(c, f)) AS x FROM t") == (
        "CONCAT(t.c, t.f) tells 0.0 from -0.0, which a refresh takes for one value; add 0.0 to the number"
    )
