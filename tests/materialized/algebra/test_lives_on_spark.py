"""Random queries on Spark, as materialized tables and as streaming INSERTs, equal their answers after each change.

For more of them: `python -m tests.materialized.algebra.lives_on_spark --seed-from 0 --seed-to 100`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tests.materialized.algebra.lives_on_spark import LifeOnSpark
from tests.support.deep_tests import thinned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", thinned([1, 2]))
def test_tables_and_streams_of_random_queries_hold_their_answers(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    life = LifeOnSpark(spark=spark, directory=str(tmp_path), seed=seed, queries_count=2)
    assert life.run(3) is None
    assert life.modes["incremental by duckdb"] > 0
