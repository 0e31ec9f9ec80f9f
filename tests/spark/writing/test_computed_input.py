"""The input of a write is computed once, before the write begins."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from pyspark.sql import Observation
from pyspark.sql import functions as sql

from storage_lib.spark import write
from storage_lib.spark.writing import computed_input
from storage_lib.spark.writing.computed_input import computed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.accumulators import Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

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
        found = sorted(row["id"] for row in rows.df.collect())

    assert before == ROWS
    assert count.value == ROWS
    assert found == list(range(ROWS))
    assert rows.df.schema == given.schema
    assert not given.is_cached


def test_what_a_shuffle_keeps_is_not_put_into_the_cache(spark: SparkSession) -> None:
    df = spark.range(ROWS).repartition(3, "id")

    with computed(df, is_shuffled=True) as rows:
        assert not df.is_cached
        assert rows.df.rdd.getNumPartitions() == 3


def test_rows_that_the_caller_has_cached_stay_cached(
    spark: SparkSession, make_table: Callable[..., DynamicTable]
) -> None:
    table = make_table(primary_key=(), write_mode="append-only", bucket=-1)
    df = spark.range(ROWS).selectExpr("id", "string(rand()) AS v", "1 AS n").cache()
    first = write(df, table)
    assert first is not None

    write(df, table, based_on=first.id)

    assert df.storageLevel.useMemory
    assert sorted(table.to_arrow()["v"].to_pylist()) == sorted(2 * [row["v"] for row in df.collect()])
    df.unpersist()


def test_observed_metrics_are_reported(spark: SparkSession) -> None:
    observation = Observation("written")
    df = spark.range(ROWS).observe(observation, sql.count(sql.lit(1)).alias("rows")).repartition(3, "id")

    with computed(df, is_shuffled=True) as rows:
        assert rows.df.count() == ROWS

    assert observation.get == {"rows": ROWS}


@pytest.mark.parametrize("is_shuffled", [True, False])
def test_decimals_reach_the_table_as_they_are(
    spark: SparkSession,
    make_table: Callable[..., DynamicTable],
    is_shuffled: bool,  # noqa: FBT001
) -> None:
    columns = {
        "id": "BIGINT NOT NULL",
        "short": "DECIMAL(12, 2)",
        "longest": "DECIMAL(18, 18)",
        "wide": "DECIMAL(38, 3)",
    }
    keyed: dict[str, Any] = {"primary_key": ("id",), "bucket": 3}
    append_only: dict[str, Any] = {"primary_key": (), "bucket": -1, "write_mode": "append-only"}
    table = make_table(columns=columns, **(keyed if is_shuffled else append_only))
    rows = [
        (
            1,
            Decimal("9999999999.99"),
            Decimal("0.999999999999999999"),
            Decimal("99999999999999999999999999999999999.999"),
        ),
        (2, Decimal("-9999999999.99"), Decimal("-0.999999999999999999"), Decimal("-0.001")),
        (3, None, None, None),
        (4, Decimal("0.01"), Decimal(0), Decimal(0)),
    ]
    df = spark.createDataFrame(rows, "id long, short decimal(12, 2), longest decimal(18, 18), wide decimal(38, 3)")

    write(df, table)

    found = sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())
    assert found == rows


@pytest.mark.parametrize(
    ("rows_min", "bytes_max", "set_by_user", "expected"),
    [
        (100, 1 << 30, None, "2147483647"),
        (101, 1 << 30, None, None),
        (100, 100, None, None),
        (100, 1 << 30, "1m", "1m"),
    ],
)
def test_batches_are_not_measured_if_all_rows_fit_one_and_no_limit_is_set(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    rows_min: int,
    bytes_max: int,
    set_by_user: str | None,
    expected: str | None,
) -> None:
    limit = "spark.sql.execution.arrow.maxBytesPerBatch"
    monkeypatch.setattr(computed_input, "_MANY_ROWS", rows_min)
    monkeypatch.setattr(computed_input, "_ONE_BATCH_BYTES_MAX", bytes_max)
    before = spark.conf.get(limit)
    if set_by_user is not None:
        spark.conf.set(limit, set_by_user)
    try:
        with computed(spark.range(ROWS).repartition(3, "id"), is_shuffled=True) as rows:
            of_rows: Any = rows.df._jdf.sparkSession().conf()
            found = of_rows.get(limit)
            after = spark.conf.get(limit)
    finally:
        spark.conf.unset(limit)

    assert found == (expected or before)
    assert after == (set_by_user or before)
