"""A union keeps its types, and so its values, when the change of one of its sides turns out to have no rows."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.spark import create_materialized_table, refresh
from storage_lib.sql import Session
from tests.support.deep_tests import crossed
from tests.support.materialized_answers import stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog

pytestmark = pytest.mark.spark

LEFT = {"id": "INT NOT NULL", "n": "INT", "d": "DECIMAL(10, 2)"}
RIGHT = {"id": "INT NOT NULL", "l": "BIGINT", "e": "DECIMAL(20, 8)", "f": "DOUBLE", "s": "STRING"}
FROM_B = "FROM b WHERE EXISTS (SELECT 1 FROM c WHERE c.id = b.id)"
UNIONS = {
    "last": "(SELECT {x} AS v FROM a UNION ALL SELECT {y} {from_b}) AS u",
    "first": "(SELECT {y} AS v {from_b} UNION ALL SELECT {x} FROM a) AS u",
}
QUERIES = {
    "texts of decimals": ("SELECT CAST(v AS STRING) AS w FROM {union}", "d", "e"),
    "quotients": ("SELECT CASE WHEN v / 3 = 3.333333 THEN 'six' ELSE 'more' END AS w FROM {union}", "d", "e"),
    "hashes": ("SELECT hash(v) AS w FROM {union}", "n", "l"),
    "integers": ("SELECT v FROM {union}", "n", "l"),
    "products": ("SELECT v * 2 AS w FROM {union}", "n", "l"),
    "integers and doubles": ("SELECT v FROM {union}", "n", "f"),
    "nothing": ("SELECT v FROM {union}", "NULL", "s"),
    "sums": ("SELECT sum(v * 2) AS w FROM {union}", "n", "l"),
    "counts": ("SELECT count(CASE WHEN v / 3 = 3.333333 THEN 1 END) AS w FROM {union}", "d", "e"),
}


@pytest.mark.parametrize(("name", "size", "place"), crossed(QUERIES, ["16 mb", "0 b"], UNIONS))
def test_values_are_those_of_the_query_if_one_side_does_not_change(
    spark: SparkSession, catalog: Catalog, name: str, size: str, place: str
) -> None:
    query, x, y = QUERIES[name]
    left = catalog.create_table("shop.a", LEFT, primary_key=["id"])
    right = catalog.create_table("shop.b", RIGHT, primary_key=["id"])
    chosen = catalog.create_table("shop.c", {"id": "INT NOT NULL"}, primary_key=["id"])
    left.append([{"id": 1, "n": 2_000_000_000, "d": Decimal(10)}])
    right.append([{"id": 1, "l": 4, "e": Decimal(1), "f": 0.5, "s": "s"}])
    chosen.append([{"id": 1}])
    options = {"refresh.in-process-size-max": size, "accumulators.rows-min": "0"}
    text = query.format(union=UNIONS[place].format(x=x, y=y, from_b=FROM_B))
    table = create_materialized_table(catalog, "shop.m", text, spark=spark, options=options)
    refresh(spark, table)
    left.append([{"id": 2, "n": 2_000_000_000, "d": Decimal(10)}])
    chosen.append([{"id": 77}])

    result = refresh(spark, table)

    assert result.mode is RefreshWork.INCREMENTAL
    assert stored_bag(table) == answer(spark, catalog, text)
    left.delete("id = 1")
    refresh(spark, table)
    assert stored_bag(table) == answer(spark, catalog, text)


def answer(spark: SparkSession, catalog: Catalog, text: str) -> Counter[tuple[object, ...]]:
    """Return the rows of the query itself."""
    rows = Session(spark, catalog, database="shop").execute(text).dataframe
    assert rows is not None
    return Counter(map(tuple, rows.collect()))
