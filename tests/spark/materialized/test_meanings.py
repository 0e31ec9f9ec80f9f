"""Refreshes give literals, names, set operations and zeros the meaning that they have in the query as it is written."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib.spark import create_materialized_table, read, refresh
from storage_lib.spark.versions.spark_feature import SparkFeature

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.materialized.plan.refresh_result import RefreshEngine
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("engine")]

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "m": "DECIMAL(15,2)",
    "r": "DECIMAL(6,4)",
    "j": "INT",
    "d": "DOUBLE",
    "true": "BOOLEAN",
    "order": "INT",
    "current_date": "INT",
}
QUERIES = {
    "a suffix": "SELECT id, m / 3L = 0.333333 AS v, m * -3L AS w, j * 3L AS x FROM t",
    "a suffix of a sum": "SELECT j, sum(m) / 3L AS v FROM t GROUP BY j",
    "a doubled quote": "SELECT id, 'it''s' AS v FROM t",
    "the least integer": "SELECT id, -2147483648 + id > 0 AS v, -2147483648 AS w FROM t",
    "intersect": "SELECT x.v / y.j AS q FROM (SELECT m AS v FROM t INTERSECT SELECT r FROM t) AS x CROSS JOIN t AS y",
    "except": "SELECT x.v / y.j AS q FROM (SELECT j AS v FROM t EXCEPT SELECT m FROM t) AS x CROSS JOIN t AS y",
    "words": "SELECT id, `true` AS v, `order`, `current_date` + 1 AS w FROM t",
    "zeros": "SELECT d, count(*) AS n FROM t GROUP BY d",
    "distinct zeros": "SELECT DISTINCT d FROM t",
    "a comparison before IN": "SELECT id, `true` FROM t WHERE `true` = (id > 1) IN (true, false)",
    "a comparison before BETWEEN": "SELECT id, j = id BETWEEN false AND `true` AS v FROM t",
    "bits": "SELECT id, id | j & 2 ^ 1 AS v FROM t",
    "a join after a comma": "SELECT x.id AS i, z.id AS k FROM t x, t y RIGHT JOIN t z ON y.id = z.id + 1",
    "zeros of a union": "SELECT d FROM t UNION SELECT d FROM t",
}


def row(number: int, d: float) -> dict[str, Any]:
    values = (number, Decimal(number % 3), Decimal(number % 2), 3, d, number % 2 == 0, number, number * 10)
    return dict(zip(COLUMNS, values, strict=True))


@pytest.fixture
def rows(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.t", COLUMNS, primary_key=["id"])
    table.append([row(1, -0.0), row(2, 0.0), row(3, 1.5)])
    return table


@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_is_that_of_the_query_in_spark(
    spark: SparkSession, catalog: Catalog, rows: DynamicTable, engine: RefreshEngine, name: str
) -> None:
    if name == "a doubled quote" and not SparkFeature.DOUBLED_QUOTES.is_here:
        pytest.skip("such a query is refused")
    table = create_materialized_table(catalog, "shop.answer", QUERIES[name], spark=spark)
    for step in range(2):
        refresh(spark, table)
        read(spark, rows).createOrReplaceTempView("t")
        expected = Counter(repr(tuple(each)) for each in spark.sql(QUERIES[name]).collect())
        found = Counter(repr(tuple(each.values())) for each in table.refresh().to_arrow().to_pylist())
        assert found == expected, (step, engine)
        rows.upsert([row(10 + step, -0.0), row(2, -0.0)])
        rows.delete("id = 1")
