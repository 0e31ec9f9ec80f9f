"""Refreshes of few rows start no jobs, plans and compilations that they do not need."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn
from storage_lib.file_store.snapshot.snapshot import CommitKind
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.materialized.sources import source_tables
from storage_lib.spark import create_materialized_table, refresh
from storage_lib.spark.compaction import distributed_compaction
from storage_lib.spark.engine import apply_changes
from storage_lib.spark.engine.source_frames import rows_of_source
from storage_lib.spark.writing import commit_rows
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.materialized.sources.own_source import OwnSource
    from storage_lib.table.dynamic_table import DynamicTable

ORDERS = {"id": "BIGINT NOT NULL", "item": "BIGINT", "amount": "BIGINT"}
ITEMS = {"id": "BIGINT NOT NULL", "name": "STRING"}
JOINED = """
    SELECT i.name, count(*) AS n, sum(o.amount) AS total
    FROM orders AS o JOIN items AS i ON o.item = i.id WHERE o.amount > 0 GROUP BY i.name
"""


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    items = catalog.create_table("shop.items", ITEMS, primary_key=["id"])
    items.append([{"id": number, "name": f"item {number % 2}"} for number in range(4)])
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    table.append([{"id": number, "item": number % 4, "amount": number} for number in range(9)])
    return table


def unwanted(*_: Any, **__: Any) -> None:
    raise AssertionError("this refresh needs no such job")


@pytest.mark.usefixtures("by_spark")
def test_a_refresh_whose_answer_stays_the_same_commits_positions_without_a_write_job(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = create_materialized_table(catalog, "shop.joined", JOINED, spark=spark)
    first = refresh(spark, table)
    orders.append([{"id": 20, "item": 1, "amount": -5}, {"id": 21, "item": 77, "amount": 5}])
    monkeypatch.setattr(commit_rows, "run_write", unwanted)

    second = refresh(spark, table)

    assert (second.mode, second.rows_read["shop.orders"], second.rows_written) == (RefreshWork.INCREMENTAL, 2, 0)
    assert second.snapshot_id == (first.snapshot_id or 0) + 1
    assert second.positions["shop.orders"] == 2
    assert refresh(spark, table).mode is RefreshWork.NONE
    orders.append([{"id": 22, "item": 1, "amount": 5}])
    with pytest.raises(AssertionError, match="no such job"):
        refresh(spark, table)


@pytest.mark.usefixtures("by_spark")
def test_an_unchanged_source_is_planned_once_and_a_changed_one_at_both_moments(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """
        SELECT most, count(*) AS n
        FROM (SELECT i.name, max(o.amount) AS most FROM orders AS o JOIN items AS i ON o.item = i.id GROUP BY i.name)
        GROUP BY most
    """
    table = create_materialized_table(catalog, "shop.most", text, spark=spark)
    refresh(spark, table)
    planned: Counter[str] = Counter()

    def counted(spark: SparkSession, source: OwnSource, columns: Any, snapshot_id: int) -> DataFrame:
        planned[source.table.name] += 1
        return rows_of_source(spark, source, columns, snapshot_id)

    monkeypatch.setattr(apply_changes, "rows_of_source", counted)
    for _ in range(2):
        orders.append([{"id": 30, "item": 1, "amount": 90}, {"id": 4, "item": 2, "amount": 91}])
        planned.clear()
        result = refresh(spark, table)

        assert result.mode is RefreshWork.INCREMENTAL
        assert planned["shop.items"] == 1
        assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())
        orders.delete([{"id": 30}])
        refresh(spark, table)
        assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())


def test_small_files_are_compacted_without_a_job(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"num-sorted-run.compaction-trigger": "2", "bucket": "1"}
    table = create_materialized_table(
        catalog, "shop.all_orders", "SELECT id, amount FROM orders", spark=spark, options=options
    )
    monkeypatch.setattr(distributed_compaction, "_run_job", unwanted)
    for number in range(4):
        orders.append([{"id": 40 + number, "item": 1, "amount": 1}])
        refresh(spark, table)

    newest = table.inspect.latest_snapshot_id() or 0
    kinds = {table.inspect.snapshot(each).commit_kind for each in range(1, newest + 1)}
    assert CommitKind.COMPACT in kinds
    assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())


def test_a_query_is_compiled_again_only_for_other_columns_of_its_sources(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT item, count(*) AS compiled_once FROM orders GROUP BY item"
    table = create_materialized_table(catalog, "shop.counts", text, spark=spark)
    monkeypatch.setattr(source_tables, "compile_query", unwanted)
    refresh(spark, table)
    orders.append([{"id": 50, "item": 1, "amount": 1}])

    assert refresh(spark, table).rows_written == 2

    orders = orders.alter(AddColumn("note", "STRING"))
    orders.append([{"id": 51, "item": 1, "amount": 1, "note": ""}])
    with pytest.raises(AssertionError, match="no such job"):
        refresh(spark, table)
