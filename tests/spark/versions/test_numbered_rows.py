"""Rows are numbered and placed alike by Spark's own means and by those for versions that lack them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql import functions as sql

from storage_lib.spark.versions.numbered_rows import (
    numbered,
    partitioned_by_number,
    spark_hash_of_int,
    without_number,
)
from storage_lib.spark.versions.spark_feature import installed_since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(params=[True, False], ids=["own", "substitutes"])
def _means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take Spark's own means, if it has them, or the substitutes."""
    if request.param and not installed_since(4, 1):
        pytest.skip("this Spark has none")
    monkeypatch.setattr("storage_lib.spark.versions.numbered_rows.installed_since", lambda *_: request.param)


def test_the_hash_of_an_integer_is_that_of_spark(spark: SparkSession) -> None:
    values = [0, 1, -1, 2**31 - 1, *range(-(2**31), 2**31, 2**32 // 201)]

    found = spark.createDataFrame([(each,) for each in values], "n int").select(sql.hash("n")).collect()

    assert [row[0] for row in found] == [spark_hash_of_int(each) for each in values]


@pytest.mark.usefixtures("_means")
@pytest.mark.parametrize("count", [1, 3, 16])
def test_rows_are_in_the_partition_of_their_number(spark: SparkSession, count: int) -> None:
    rows = spark.range(40).selectExpr("id", "CAST(id * 7 % 23 AS INT) AS number")

    placed = partitioned_by_number(rows, sql.col("number"), count)

    assert placed.columns == ["id", "number"]
    assert placed.rdd.getNumPartitions() == count
    found = placed.select("number", sql.spark_partition_id()).collect()
    assert all(partition == number % count for number, partition in found)
    assert len(found) == 40


@pytest.mark.usefixtures("_means")
def test_a_function_numbers_rows_by_some_of_their_columns(spark: SparkSession) -> None:
    rows = spark.range(30).selectExpr(
        "id", "IF(id % 4 = 0, NULL, CAST(id AS STRING)) AS `a.b`", "CAST(id AS DECIMAL(30, 2)) AS d", "id % 3 = 0 AS x"
    )
    seen: Callable[[pa.Array], pa.Array] = _numbers_of

    more, number = numbered(rows, [sql.col("`a.b`"), sql.col("d")], seen)

    found = more.select("id", number.alias("found")).orderBy("id").collect()
    assert [row.found for row in found] == [_number(each) for each in range(30)]
    assert without_number(more).schema == rows.schema
    assert sorted(without_number(more).collect()) == sorted(rows.collect())
    placed = partitioned_by_number(more, number, 5).select("*", sql.spark_partition_id().alias("place"))
    assert placed.columns == [*rows.columns, "place"]
    assert all(row.place == _number(row.id) % 5 for row in placed.collect())


def _number(row: int) -> int:
    return row + (0 if row % 4 == 0 else len(str(row)))


def _numbers_of(keys: pa.Array) -> pa.Array:
    pairs = keys.to_pylist()
    return pa.array([int(pair["d"]) + len(pair["a.b"] or "") for pair in pairs], pa.int32())
