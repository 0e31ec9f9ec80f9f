"""Statements of a refresh have the values and types of the query as it is written, for every expression of a list.

sqlglot reads the text of a query and writes it again, and may take a word of Spark for another one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.errors import InvalidInputError
from storage_lib.materialized.algebra import compile_query
from storage_lib.spark.versions.doubled_quotes import refuse_doubled_quotes
from tests.materialized.algebra.random_expressions import TABLE
from tests.spark.materialized.exact_values import outcome, random_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = Path(__file__).parents[2] / "cases" / "rendered_expressions.txt"
EXPRESSIONS = [line for line in CASES.read_text().splitlines() if not line.startswith("#")]


def test_an_expression_that_is_written_again_has_its_value_and_type(spark: SparkSession) -> None:
    spark.createDataFrame(random_rows(Random(0))).createOrReplaceTempView("t")  # noqa: S311  chance, not secrets
    different, compared = [], 0
    for expression in EXPRESSIONS:
        query = f"SELECT id, {expression} AS v FROM t"  # noqa: S608
        try:
            refuse_doubled_quotes("shop.m", query)
        except InvalidInputError:
            continue
        try:
            compiled = compile_query(query, [TABLE], database="shop")
        except InvalidInputError:
            different.append(f"{expression}: is not read")
            continue
        if compiled.tree is None:
            continue
        text = compiled.full(lambda *_: "t")
        expected, found = outcome(spark, query), outcome(spark, text)
        if expected is None:
            continue
        compared += 1
        if found is None:
            different.append(f"{expression}: fails as {text}")
        elif found[0] != expected[0]:
            different.append(f"{expression}: is {found[0][-1]}, not {expected[0][-1]}, as {text}")
        elif Counter(found[1]) != Counter(expected[1]):
            different.append(f"{expression}: has other values, as {text}")

    assert different == []
    assert compared >= 200
