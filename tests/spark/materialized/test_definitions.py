"""Creation and alteration of materialized tables."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError, NotFoundError
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, RefreshMode, RefreshStatus
from storage_lib.spark import (
    create_materialized_table,
    refresh,
    resume,
    set_freshness,
    set_query,
    set_refresh_mode,
    suspend,
)
from storage_lib.spark.engine.session_settings import settings_of
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

QUERY = "SELECT id, amount * 2 AS twice FROM orders"


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    columns = {"id": "BIGINT NOT NULL", "cat": "STRING", "amount": "DECIMAL(10, 2)"}
    table = catalog.create_table("shop.orders", columns, primary_key=["id"])
    table.append([{"id": 1, "cat": "a", "amount": 1}, {"id": 2, "cat": "b", "amount": 2}])
    return table


@pytest.fixture
def doubled(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> DynamicTable:
    assert orders.definition is None
    return create_materialized_table(catalog, "shop.doubled", QUERY, spark=spark)


def test_a_definition_is_stored_with_the_table(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    created = create_materialized_table(
        catalog,
        "mart.doubled",
        QUERY,
        spark=spark,
        database="shop",
        partition_keys=["twice"],
        primary_key=["id", "twice"],
        freshness="INTERVAL '5' MINUTE",
        refresh_mode="INCREMENTAL",
        options={"bucket": "2"},
        comment="twice",
    )

    loaded = catalog.load_table("mart.doubled")
    assert loaded.definition == MaterializedTableDefinition(
        query=QUERY,
        database="shop",
        sources=("shop.orders",),
        freshness=timedelta(minutes=5),
        refresh_mode=RefreshMode.INCREMENTAL,
        status=RefreshStatus.ACTIVATED,
        settings=settings_of(spark),
    )
    assert [str(field.type) for field in loaded.schema.fields] == ["BIGINT NOT NULL", "DECIMAL(12, 2) NOT NULL"]
    assert (loaded.schema.primary_keys, loaded.schema.partition_keys) == (("id", "twice"), ("twice",))
    assert (loaded.schema.comment, loaded.options.bucket) == ("twice", 2)
    assert loaded.inspect.latest_snapshot_id() is None
    again = create_materialized_table(catalog, "mart.doubled", "SELECT 1 AS x", spark=spark, if_not_exists=True)
    assert again.definition == created.definition


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"query": "SELECT idd FROM orders"}, "idd"),
        ({"query": "SELECT id FROM doubled"}, "its own source"),
        ({"query": "SELECT id, amount + array(1) AS x FROM orders"}, "Spark refuses its query"),
        ({"query": "SELECT id AS _weight FROM orders"}, "_weight"),
        ({"query": "SELECT id, rand() AS r FROM orders", "refresh_mode": "incremental"}, "INCREMENTAL does not fit"),
        ({"refresh_mode": "hourly"}, "unknown refresh mode 'hourly'"),
        ({"freshness": "soon"}, "invalid freshness"),
        ({"options": {"merge-engine": "aggregation"}}, "option merge-engine"),
        ({"options": {"write-mode": "append-only"}}, "option write-mode"),
        ({"options": {"sequence.field": "twice"}}, "option sequence.field"),
        ({"options": {"ignore-delete": "true"}}, "option ignore-delete"),
        ({"options": {"log.consistency": "eventual"}}, "option log.consistency"),
        ({"options": {"buckets": "2"}}, "unknown option"),
        ({"primary_key": ["nothing"]}, "nothing"),
    ],
)
def test_a_definition_that_can_not_be_kept_is_refused(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, arguments: dict[str, Any], words: str
) -> None:
    given = {"query": QUERY, **arguments}

    with pytest.raises(InvalidInputError, match=words):
        create_materialized_table(catalog, "shop.doubled", given.pop("query"), spark=spark, **given)

    assert catalog.list_tables() == [orders.name]


@pytest.mark.parametrize(
    ("query", "partition_keys", "key"),
    [
        ("SELECT id, amount FROM orders", [], ("id",)),
        ("SELECT coalesce(cat, '') AS cat, id FROM orders", ["cat"], ("cat", "id")),
        ("SELECT cat, id FROM orders", ["cat"], ()),
        ("SELECT id, amount FROM orders", ["id"], ()),
        ("SELECT amount FROM orders", [], ()),
        ("SELECT count(*) AS n FROM orders", [], ()),
    ],
)
def test_the_key_follows_from_the_query(
    spark: SparkSession,
    catalog: Catalog,
    orders: DynamicTable,
    query: str,
    partition_keys: list[str],
    key: tuple[str, ...],
) -> None:
    table = create_materialized_table(catalog, "shop.t", query, spark=spark, partition_keys=partition_keys)

    refresh(spark, table)

    assert table.schema.primary_keys == key
    assert stored_bag(table) == expected_bag(catalog, table)
    assert table.definition is not None
    assert table.definition.sources == (orders.name,)


def test_a_query_over_a_missing_table_is_refused(spark: SparkSession, catalog: Catalog) -> None:
    with pytest.raises(NotFoundError, match=r"shop\.doubled reads shop\.orders"):
        create_materialized_table(catalog, "shop.doubled", QUERY, spark=spark)


def test_a_query_that_is_not_deterministic_is_computed_as_a_whole_each_time(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = create_materialized_table(catalog, "shop.t", f"{QUERY} WHERE rand() >= 0", spark=spark)
    refresh(spark, table)

    again = refresh(spark, table)

    assert (again.mode, again.snapshot_id) == ("full", None)
    assert table.to_arrow().num_rows == orders.to_arrow().num_rows


def test_settings_for_schedulers_are_altered(spark: SparkSession, doubled: DynamicTable) -> None:
    altered = set_freshness(suspend(doubled), timedelta(hours=2))
    assert altered.definition is not None
    assert (altered.definition.status, altered.definition.freshness) == (RefreshStatus.SUSPENDED, timedelta(hours=2))

    altered = set_refresh_mode(set_freshness(resume(doubled), None), "full")
    assert altered.definition == MaterializedTableDefinition(
        query=QUERY,
        database="shop",
        sources=("shop.orders",),
        refresh_mode=RefreshMode.FULL,
        settings=settings_of(spark),
    )


def test_a_suspended_table_is_refreshed_on_request(spark: SparkSession, doubled: DynamicTable) -> None:
    assert refresh(spark, suspend(doubled)).rows_written == 2


def test_a_new_query_may_add_columns_at_the_end(spark: SparkSession, catalog: Catalog, doubled: DynamicTable) -> None:
    refresh(spark, doubled)

    altered = set_query(doubled, f"{QUERY[:-12]}, cat FROM orders WHERE id > 1", spark=spark)
    result = refresh(spark, doubled)

    assert altered.schema.arrow_schema.names == ["id", "twice", "cat"]
    assert (result.mode, result.reason) == ("full", "the query was changed")
    assert stored_bag(altered) == expected_bag(catalog, altered)
    assert altered.to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT id FROM orders", "lacks column twice"),
        ("SELECT id, amount AS twice FROM orders", "column twice"),
        ("SELECT amount * 2 AS twice, id FROM orders", "column id"),
        ("SELECT id, twice FROM orders", "twice"),
    ],
)
def test_a_new_query_with_other_columns_is_refused(
    spark: SparkSession, doubled: DynamicTable, query: str, words: str
) -> None:
    with pytest.raises(InvalidInputError, match=words):
        set_query(doubled, query, spark=spark)

    assert doubled.refresh().definition == doubled.definition
