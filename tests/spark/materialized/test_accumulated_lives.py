"""Tables with accumulators hold their queries' answers after any life, with crashes between the commits, and rivals.

For more lives: ``python -m tests.spark.materialized.accumulated_lives --seed-from 0 --seed-to 2000``.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("duckdb")

from tests.spark.materialized.accumulated_lives import run_life
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]


@pytest.mark.parametrize(
    ("first", "count"), thinned([pytest.param(0, 3), *(pytest.param(1000 * part, 8) for part in range(1, 17))])
)
def test_accumulators_give_the_answer_after_each_refresh_of_a_random_life(
    spark: SparkSession, first: int, count: int
) -> None:
    met: Counter[str] = Counter()
    for seed in range(first, first + count):
        problem, found = run_life(spark, seed, 6)
        assert problem is None
        met += found

    assert met["incremental by duckdb"] > count
    assert met["crash between the commits"]
