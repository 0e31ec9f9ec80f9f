"""Statements that DuckDB runs for small refreshes have the values and the types that Spark's have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.spark.materialized.exact_values import compare
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", thinned(range(3)))
def test_random_expressions_have_the_values_and_types_of_spark(spark: SparkSession, seed: int) -> None:
    found = compare(spark, seed, 20)

    assert found.different == []
    # Otherwise the comparisons would prove little: of 40 queries, few are refused, or fail for the largest numbers.
    assert found.equal >= 25, found
