"""The input of a write is computed once, before the write begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Observation
from pyspark.sql import functions as sql

from storage_lib.spark.tasks.computed_input import computed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
ROWS = 100


def counted_rows(spark: SparkSession, count: Accumulator[int]) -> DataFrame:
    """Return a data frame that counts how many of its rows are computed."""

    def counting(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            count.add(batch.num_rows)
            yield batch

    return spark.range(ROWS).mapInArrow(counting, "id long")


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_rows_are_computed_before_the_body_and_only_once(spark: SparkSession, is_shuffled: bool) -> None:  # noqa: FBT001
    count = spark.sparkContext.accumulator(0)
    df = counted_rows(spark, count)
    given = df.repartition(3, "id") if is_shuffled else df

    with computed(given, is_shuffled=is_shuffled) as rows:
        before = count.value
        found = sorted(row["id"] for row in rows.collect())

    assert before == ROWS
    assert count.value == ROWS
    assert found == list(range(ROWS))
    assert rows.schema == given.schema
    assert not given.is_cached


def test_what_a_shuffle_keeps_is_not_put_into_the_cache(spark: SparkSession) -> None:
    df = spark.range(ROWS).repartition(3, "id")

    with computed(df, is_shuffled=True) as rows:
        assert not df.is_cached
        assert rows.rdd.getNumPartitions() == 3


def test_observed_metrics_are_reported(spark: SparkSession) -> None:
    observation = Observation("written")
    df = spark.range(ROWS).observe(observation, sql.count(sql.lit(1)).alias("rows")).repartition(3, "id")

    with computed(df, is_shuffled=True) as rows:
        assert rows.count() == ROWS

    assert observation.get == {"rows": ROWS}
