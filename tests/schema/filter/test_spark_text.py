"""Text of Spark SQL is parsed with the precedence of Spark's own parser, and written without another meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("sqlglot")

import sqlglot
from sqlglot.errors import ParseError, SqlglotError

from storage_lib.schema.filter.spark_text import SparkText
from tests.schema.filter.operator_texts import bracketed, in_one_spelling, pairs, random_texts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Parsed = Callable[[str], str | None]
_TAKES_A_WORD_FOR_A_NAME = re.compile(r"'not\b|'a(?:ny|ll)\(")
"""Spark's reading of NOT in the middle of a value, and of ANY as an operand: a column and a function of that name."""


@pytest.fixture
def of_spark(spark: SparkSession) -> Parsed:
    """Return a function from a condition to Spark's text of its tree; None if Spark can't parse it."""
    session: Any = spark._jsparkSession  # type: ignore[attr-defined, unused-ignore]
    parser = session.sessionState().sqlParser()

    def parsed(text: str) -> str | None:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped, unused-ignore]
        from pyspark.errors import PySparkException

        try:
            return in_one_spelling(parser.parseExpression(text).toString())
        except (Py4JJavaError, PySparkException):
            return None

    return parsed


def difference(text: str, of_spark: Parsed) -> str | None:
    """Return how sqlglot's tree of a condition differs from Spark's; None if it does not."""
    wanted = of_spark(text)
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect=SparkText).expressions[0]
    except SqlglotError as error:
        is_ours = wanted is None or _TAKES_A_WORD_FOR_A_NAME.search(wanted) or "write" in str(error)
        return None if is_ours else f"refused {text}: {error}"
    if wanted is None or _TAKES_A_WORD_FOR_A_NAME.search(wanted):
        return None
    for written in (bracketed(tree).sql(SparkText), tree.sql(SparkText)):
        found = of_spark(written)
        if found != wanted:
            return f"{text} is {wanted}, but {written} is {found}"
    return None


def test_operators_bind_as_in_spark(of_spark: Parsed) -> None:
    texts = [text for number, text in enumerate(pairs()) if number % 6 == 0] + list(random_texts(1, 300))

    assert [each for text in texts if (each := difference(text, of_spark)) is not None] == []


@pytest.mark.deep
def test_all_pairs_of_operators_bind_as_in_spark(of_spark: Parsed) -> None:
    texts = [*dict.fromkeys(pairs()), *random_texts(2, 6_000)]

    assert [each for text in texts if (each := difference(text, of_spark)) is not None] == []


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("o = p IN (1, 2)", "(o = p) IN (1, 2)"),
        ("o = p BETWEEN a AND b = c", "(o = p) BETWEEN a AND (b = c)"),
        ("o = p NOT LIKE q", "(o = p) NOT LIKE q"),
        ("NOT o = p IS NULL AND q", "(NOT ((o = p) IS NULL)) AND q"),
        ("a < b = c <=> d", "((a < b) = c) <=> d"),
        ("a | b ^ c & d << e + f", "a | (b ^ (c & (d << (e + f))))"),
        ("a || b + c || d", "((a || b) + c) || d"),
        ("a || b COLLATE UTF8_LCASE = c", "(a || (b COLLATE UTF8_LCASE)) = c"),
        ("-a::STRING", "-(CAST(a AS STRING))"),
        ("-1::STRING", "CAST((-1) AS STRING)"),
        ("-3L::STRING", "CAST((-(CAST(3 AS BIGINT))) AS STRING)"),
        ("DATE '2024-01-01'::STRING", "CAST((CAST('2024-01-01' AS DATE)) AS STRING)"),
        ("INTERVAL 1 DAY 2 HOURS * 2", "(INTERVAL '1' DAY + INTERVAL '2' HOURS) * 2"),
    ],
)
def test_a_condition_is_bracketed_as_in_spark(text: str, tree: str) -> None:
    parsed = sqlglot.parse_one(f"SELECT {text}", dialect=SparkText).expressions[0]

    assert bracketed(parsed).sql(SparkText) == tree


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = NOT b", "parentheses around NOT"),
        # Older versions of sqlglot read no second one.
        ("a IN (1) IN (2)", "parentheses around the first of two predicates|Unexpected token"),
        ("a LIKE ANY ('x') = b", "parentheses around the first of two predicates"),
        ("a >>> b", "shiftrightunsigned"),
        ("INTERVAL 1 DAY + 1", "parentheses around the interval"),
        ("a::STRING COLLATE UTF8_LCASE", "parentheses before COLLATE"),
    ],
)
def test_what_spark_reads_in_another_way_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        sqlglot.parse_one(f"SELECT {text}", dialect=SparkText)
