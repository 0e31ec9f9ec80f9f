"""Each query of a data frame or a view has filters and, if it follows the table, a snapshot of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.spark import read, write
from storage_lib.sql import Session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
CONDITIONS = {"id = 5": 1, "true": 100, "id = 5 OR v = 'none'": 1, "id >= 90": 10, "v = 'b' OR id < 0": 100}


@pytest.fixture
def merged(spark: SparkSession, make_table: Callable[..., DynamicTable]) -> DynamicTable:
    """Return a table of 100 rows whose files have to be merged, so that the data source reads them."""
    table = make_table("merged", bucket=1, write_only="true")
    for value in "ab":
        write(spark.range(100).selectExpr("id", f"'{value}' v", "1 n"), table)
    return table


def counts_of(df: DataFrame) -> dict[str, int]:
    return {condition: df.where(condition).count() for condition in CONDITIONS}


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_the_filter_of_one_query_does_not_change_the_next(
    spark: SparkSession, merged: DynamicTable, pushdown: str
) -> None:
    before = spark.conf.get(PUSHDOWN)
    spark.conf.set(PUSHDOWN, pushdown)
    try:
        plain = spark.read.format("dynamic_table").load(merged.location)
        for df in (read(spark, merged), read(spark, merged, live=True), plain):
            assert counts_of(df) == CONDITIONS
            assert df.where("id = 3").union(df.where("id < 3 OR v = 'none'")).count() == 4
            joined = df.where("id = 3").alias("x").crossJoin(df.where("id > 97").alias("y"))
            assert sorted(row[0] for row in joined.select("y.id").collect()) == [98, 99]
    finally:
        spark.conf.set(PUSHDOWN, str(before))


def test_the_queries_of_a_view_of_the_newest_snapshot_follow_the_table(
    spark: SparkSession, merged: DynamicTable
) -> None:
    live = read(spark, merged, live=True)
    fixed = read(spark, merged)
    with Session(spark, open_catalog(merged.address.warehouse), database="db") as sql:
        sql.register_views()
    queries: tuple[Callable[[], int], ...] = (
        lambda: spark.sql("SELECT count(*) FROM merged WHERE id < 500").collect()[0][0],
        lambda: spark.sql("SELECT count(*) FROM merged").collect()[0][0],
        lambda: live.where("id < 500").count(),
        live.count,
    )
    assert [query() for query in queries] == [100] * 4
    assert fixed.count() == 100

    write(spark.range(100, 150).selectExpr("id", "'c' v", "1 n"), merged)

    assert [query() for query in queries] == [150] * 4
    assert fixed.where("id < 500").count() == fixed.count() == 100
    spark.catalog.dropTempView("merged")


def test_a_stream_that_is_joined_with_a_live_frame_sees_its_newest_rows(
    spark: SparkSession, merged: DynamicTable, make_table: Callable[..., DynamicTable]
) -> None:
    source = make_table("source", columns={"id": "BIGINT"}, primary_key=(), write_mode="append-only", bucket=-1)
    source.append([{"id": 1}])
    seen: list[list[tuple[int, str]]] = []
    changes = spark.readStream.format("dynamic_table").option("scan.streaming", "true").load(source.location)
    joined = changes.join(read(spark, merged, live=True), "id").select("id", "v")
    query = joined.writeStream.foreachBatch(
        lambda rows, _: seen.append([(row.id, row.v) for row in rows.collect()])
    ).start()
    try:
        query.processAllAvailable()
        write(spark.createDataFrame([(2, "new", 1)], "id long, v string, n int"), merged)
        source.append([{"id": 2}])
        query.processAllAvailable()
    finally:
        query.stop()

    assert [batch for batch in seen if batch] == [[(1, "b")], [(2, "new")]]
