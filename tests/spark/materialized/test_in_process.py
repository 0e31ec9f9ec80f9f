"""Small refreshes are computed in this process, with the rows that Spark would write; others by Spark."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import AddColumn, RemoveOption, RenameColumn, SetOption
from storage_lib.duckdb import duckdb_session
from storage_lib.materialized.engine import first_able
from storage_lib.materialized.plan.refresh_result import RefreshEngine, RefreshWork
from storage_lib.materialized.sources import source_delta
from storage_lib.materialized.sources.source_tables import bound_query
from storage_lib.spark import create_materialized_table, refresh
from storage_lib.spark.engine.spark_engine import duckdb_beside
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.spark import RefreshResult
    from storage_lib.table.dynamic_table import DynamicTable

pytestmark = pytest.mark.spark

ORDERS = {"id": "BIGINT NOT NULL", "cat": "STRING", "amount": "INT", "price": "DECIMAL(12,2)"}
ALWAYS = {"accumulators.rows-min": "0"}
SUMS = "SELECT cat, count(*) AS n, sum(amount) AS total, sum(price) AS paid FROM orders GROUP BY cat"
AVERAGES = "SELECT cat, avg(price) AS mean, sum(price) / count(*) AS quotient FROM orders GROUP BY cat"
LARGEST = "SELECT cat, max(amount) AS most, min(cat || '!') AS mark FROM orders WHERE id > 0 GROUP BY cat"
FIRST = "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3"
JOINED = """
    SELECT a.id, b.id AS other, a.amount * b.amount AS product
    FROM orders AS a LEFT JOIN orders AS b ON a.cat = b.cat AND a.id < b.id
"""


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    table.append([order(number) for number in range(9)])
    return table


def order(number: int, amount: int | None = None) -> dict[str, Any]:
    value = number if amount is None else amount
    return {"id": number, "cat": "abc"[number % 3], "amount": value, "price": Decimal(value).scaleb(-2)}


def kept(
    spark: SparkSession, catalog: Catalog, query: str, options: dict[str, str] | None = None
) -> tuple[DynamicTable, RefreshResult]:
    table = create_materialized_table(catalog, "shop.answer", query, spark=spark, options=options or {})
    return table, refresh(spark, table)


def refreshed(spark: SparkSession, catalog: Catalog, table: DynamicTable) -> RefreshResult:
    """Refresh incrementally, and compare the rows with the query's answer by another engine."""
    result = refresh(spark, table)
    assert result.mode is RefreshWork.INCREMENTAL, result
    assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())
    return result


def test_the_largest_and_smallest_double_are_those_of_spark(spark: SparkSession, catalog: Catalog) -> None:
    signals = catalog.create_table(
        "shop.signals", {"id": "BIGINT NOT NULL", "cat": "STRING", "level": "DOUBLE"}, primary_key=["id"]
    )
    query = """
        SELECT cat, max(level) AS most, min(level) AS least FROM signals GROUP BY cat
        HAVING max(level) >= min(level) OR min(level) IS NULL
    """
    by = {
        "duckdb": create_materialized_table(catalog, "shop.here", query, spark=spark),
        "spark": create_materialized_table(
            catalog, "shop.there", query, spark=spark, options={"refresh.in-process-size-max": "0 b"}
        ),
    }
    nan, infinity = float("nan"), float("inf")
    levels = [0.0, -0.0, nan, -0.0, -infinity, infinity, nan, nan, None, 1.5, nan, -2.25, -0.0, 0.0, None]
    rows = [{"id": n, "cat": "abcdef"[n // 3], "level": level} for n, level in enumerate(levels)]
    changed = [{"id": 0, "cat": "a", "level": -0.0}, {"id": 9, "cat": "d", "level": None}]

    for some in (rows[:8], rows[8:], changed, [{**row, "level": -0.0} for row in rows[3:6]]):
        signals.upsert(some)
        answers = {}
        for chosen, table in by.items():
            assert refresh(spark, table).engine == chosen
            answers[chosen] = sorted(map(repr, table.refresh().to_arrow().to_pylist()))
        assert answers["duckdb"] == answers["spark"]


@pytest.mark.parametrize("query", [SUMS, LARGEST, FIRST, JOINED], ids=["sums", "largest", "first", "joined"])
@pytest.mark.parametrize("options", [{}, ALWAYS], ids=["recomputed", "accumulated"])
def test_few_changes_are_applied_by_duckdb(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, query: str, options: dict[str, str]
) -> None:
    table, first = kept(spark, catalog, query, options)
    found = []
    for number in range(3):
        orders.upsert([order(number, 50), order(20 + number)])
        orders.delete(f"id = {number + 3}")
        found.append(refreshed(spark, catalog, table).engine)

    by = RefreshEngine.SPARK if options and query == SUMS else RefreshEngine.DUCKDB
    assert (first.mode, first.engine) == (RefreshWork.FULL, by), "Spark builds accumulators"
    assert found == [RefreshEngine.DUCKDB] * 3


def test_averages_and_quotients_of_decimals_have_the_digits_of_spark(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table, _ = kept(spark, catalog, AVERAGES)
    orders.append([order(20 + number, 3**number) for number in range(9)])

    result = refresh(spark, table)

    spark.createDataFrame(orders.to_arrow()).createOrReplaceTempView("orders")
    assert result.engine is RefreshEngine.DUCKDB
    rows = {tuple(row.values()) for row in table.refresh().to_arrow().to_pylist()}
    assert rows == {tuple(row) for row in spark.sql(AVERAGES).collect()}


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT id, substring_index(cat, 'b', 1) AS s FROM orders",
            "DuckDB may give other values than Spark for SUBSTRING_INDEX",
        ),
        ("SELECT id, CAST(amount AS DOUBLE) AS d FROM orders", "DuckDB may give other values than Spark for CAST"),
        ("SELECT id, map('a', amount)['a'] AS m FROM orders", "DuckDB may give other values than Spark for"),
    ],
)
def test_expressions_without_an_exact_rule_are_left_to_spark(
    spark: SparkSession,
    catalog: Catalog,
    orders: DynamicTable,
    caplog: pytest.LogCaptureFixture,
    query: str,
    reason: str,
) -> None:
    caplog.set_level("DEBUG", logger=first_able.__module__)
    table, _ = kept(spark, catalog, query)
    orders.append([order(20)])

    result = refresh(spark, table)

    assert (result.mode, result.engine, result.rows_written) == (RefreshWork.INCREMENTAL, RefreshEngine.SPARK, 1)
    assert reason in caplog.text


def test_an_error_of_duckdb_means_that_spark_computes_the_refresh(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    # Letters beyond ASCII are an error there, because the engines know other versions of Unicode.
    table, _ = kept(spark, catalog, "SELECT id, upper(cat) AS up FROM orders")
    orders.append([{**order(20), "cat": "straße"}])

    result = refresh(spark, table)

    assert result.engine is RefreshEngine.SPARK
    assert "STRASSE" in table.refresh().to_arrow()["up"].to_pylist()


def test_an_overflow_fails_with_the_words_of_spark_and_leaves_the_rows(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table, first = kept(spark, catalog, "SELECT id, amount * 2 AS twice FROM orders")
    orders.append([order(20, 2**31 - 1)])

    with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
        refresh(spark, table)

    assert table.refresh().inspect.latest_snapshot_id() == first.snapshot_id
    orders.delete("id = 20")
    assert refreshed(spark, catalog, table).rows_written == 0


def test_large_files_and_many_changes_are_left_to_spark(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = kept(spark, catalog, LARGEST, {"refresh.in-process-size-max": "10 b"})
    found = []
    orders.append([order(20)])
    found.append(refreshed(spark, catalog, table).engine)
    table = table.refresh().alter(SetOption("refresh.in-process-size-max", "0 b"))
    orders.append([order(21)])
    found.append(refreshed(spark, catalog, table).engine)
    table = table.refresh().alter(RemoveOption("refresh.in-process-size-max"))
    orders.append([order(23)])
    with monkeypatch.context() as many:
        many.setattr(source_delta, "_ROWS_HERE_MAX", 0)
        found.append(refreshed(spark, catalog, table).engine)
    orders.append([order(24)])
    last = refreshed(spark, catalog, table).engine

    assert found == [RefreshEngine.SPARK] * 3
    assert last is RefreshEngine.DUCKDB


def test_without_duckdb_spark_computes_every_refresh(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, _ = kept(spark, catalog, SUMS)
    orders.append([order(20)])
    monkeypatch.setattr(duckdb_session, "_database", None)
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "duckdb", None)
        result = refresh(spark, table)

    assert result.engine is RefreshEngine.SPARK
    assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())


def test_files_of_older_schemas_are_read_by_duckdb(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    table, _ = kept(spark, catalog, "SELECT a.id, b.cat FROM orders AS a JOIN orders AS b ON a.amount = b.id")
    orders = orders.alter(AddColumn("note", "STRING"), RenameColumn("price", "cost"))
    orders.append([{"id": 30, "cat": "z", "amount": 2, "cost": None, "note": "n"}])

    assert refreshed(spark, catalog, table).engine is RefreshEngine.DUCKDB


@pytest.mark.parametrize(
    ("query", "options", "reason"),
    [
        (SUMS, {}, None),
        (SUMS, {"refresh.in-process-size-max": "0 b"}, "refresh.in-process-size-max is 0"),
        ("SELECT id, md5(cat) AS m FROM orders", {}, "DuckDB may give other values than Spark for MD5"),
        ("SELECT id, amount FROM orders OFFSET 1", {}, "the query is not incremental"),
    ],
)
def test_it_is_known_before_a_refresh_why_spark_computes_it(
    spark: SparkSession,
    catalog: Catalog,
    orders: DynamicTable,
    query: str,
    options: dict[str, str],
    reason: str | None,
) -> None:
    table = create_materialized_table(catalog, "shop.answer", query, spark=spark, options=options)
    assert table.definition is not None
    bound = bound_query(table.address, table.definition)

    found = duckdb_beside(spark).why_not_small_refreshes(table, bound)

    assert found == reason or (reason is not None and (found or "").startswith(reason))
