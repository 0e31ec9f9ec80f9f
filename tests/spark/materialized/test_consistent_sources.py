"""Sources that derive from one table are read at snapshots that were refreshed from the same snapshot of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib.materialized.sources.source_positions import recorded_position, source_name
from storage_lib.spark import create_materialized_table, refresh
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable


def test_a_diamond_is_read_at_one_moment(spark: SparkSession, catalog: Catalog) -> None:
    orders = catalog.create_table("shop.orders", {"id": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=["id"])
    orders.append([{"id": 1, "n": 1}])
    left = create_materialized_table(catalog, "shop.left", "SELECT id, n FROM orders", spark=spark)
    right = create_materialized_table(catalog, "shop.right", "SELECT id, -n AS n FROM orders", spark=spark)
    joined = (
        "SELECT l.id, l.n + r.n AS zero, o.n FROM `left` l JOIN `right` r ON l.id = r.id JOIN orders o ON o.id = l.id"
    )
    top = create_materialized_table(catalog, "shop.top", joined, spark=spark)

    def moments() -> set[int]:
        """Return the snapshots of ``orders`` from which the sources of ``top`` were computed."""
        newest = top.inspect.latest_snapshot_id()
        assert newest is not None
        reached = top.inspect.source_positions(newest)
        found = set()
        for source in (left, right):
            at = recorded_position(reached, source_name(source))
            assert at is not None
            of_source = recorded_position(source.inspect.source_positions(at.snapshot_id), source_name(orders))
            assert of_source is not None
            found.add(of_source.snapshot_id)
        directly = recorded_position(reached, source_name(orders))
        assert directly is not None
        return found | {directly.snapshot_id}

    def assert_consistent(moment: int) -> None:
        assert moments() == {moment}
        assert stored_bag(top) == expected_bag(catalog, top)
        assert set(top.to_arrow()["zero"].to_pylist()) == {0}

    # `left` is ahead of `right`: the older snapshots of `left` and `orders` fit.
    refresh(spark, left)
    refresh(spark, right)
    refresh(spark, top)
    orders.upsert([{"id": 1, "n": 5}, {"id": 2, "n": 2}])
    refresh(spark, left)
    waiting = refresh(spark, top)
    assert (waiting.mode, waiting.snapshot_id) == ("none", None)
    assert_consistent(1)

    # A third snapshot of `orders` that only `left` has read: `top` reaches the second.
    refresh(spark, right)
    orders.upsert([{"id": 3, "n": 3}])
    refresh(spark, left)
    assert refresh(spark, top).mode == "incremental"
    assert_consistent(2)

    refresh(spark, right)
    refresh(spark, top)
    assert_consistent(3)


def test_a_table_waits_for_sources_that_have_no_moment_in_common(spark: SparkSession, catalog: Catalog) -> None:
    orders = catalog.create_table("shop.orders", {"id": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=["id"])
    orders.append([{"id": 1, "n": 1}])
    left = create_materialized_table(catalog, "shop.a", "SELECT id, n FROM orders", spark=spark)
    right = create_materialized_table(catalog, "shop.b", "SELECT id, -n AS n FROM orders", spark=spark)
    both = "SELECT a.id, a.n + b.n AS zero FROM a JOIN b ON a.id = b.id"
    top = create_materialized_table(catalog, "shop.top", both, spark=spark)
    refresh(spark, left)
    orders.upsert([{"id": 1, "n": 5}])
    refresh(spark, right)

    waiting = refresh(spark, top)
    refresh(spark, left)
    reached = refresh(spark, top)

    assert (waiting.mode, waiting.snapshot_id, top.to_arrow().num_rows) == ("none", None, 1)
    assert "different snapshots" in waiting.reason
    assert reached.mode == "full"
    assert top.to_arrow().to_pylist() == [{"id": 1, "zero": 0}]


def test_a_chain_is_refreshed_table_by_table(spark: SparkSession, catalog: Catalog) -> None:
    orders: DynamicTable = catalog.create_table(
        "shop.orders", {"id": "BIGINT NOT NULL", "n": "BIGINT"}, primary_key=["id"]
    )
    first = create_materialized_table(catalog, "shop.a", "SELECT n, count(*) AS c FROM orders GROUP BY n", spark=spark)
    second = create_materialized_table(catalog, "shop.b", "SELECT c, count(*) AS m FROM a GROUP BY c", spark=spark)
    for rows in ([{"id": 1, "n": 1}, {"id": 2, "n": 1}], [{"id": 3, "n": None}, {"id": 1, "n": 2}]):
        orders.upsert(rows)
        for table in (first, second):
            refresh(spark, table)
            assert stored_bag(table) == expected_bag(catalog, table)

    assert stored_bag(second) == {(1, 3): 1}
