"""A refresher starts Spark only for a refresh that needs it, and refreshes the other tables meanwhile."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.plan.refresh_result import RefreshResult
from storage_lib.materialized.service.fresh_tables import FreshTables
from storage_lib.spark import create_materialized_table
from storage_lib.spark.engine.refresh_on_demand import RefreshOnDemand, SparkStartError
from storage_lib.spark.refresher import main
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

QUICK = "SELECT cat, count(*) AS n FROM orders GROUP BY cat"
# Spark's own rounding, which DuckDB does not compute.
SLOW = "SELECT id, round(sqrt(amount), 2) AS root FROM orders"


class Start:
    """A start of Spark that takes until it is allowed to end. ``begun`` counts the calls."""

    def __init__(self, result: Callable[[], SparkSession]) -> None:
        self.begun = 0
        self.may_end = threading.Event()
        self._result = result

    def __call__(self) -> SparkSession:
        self.begun += 1
        assert self.may_end.wait(60)
        return self._result()


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table(
        "shop.orders", {"id": "BIGINT NOT NULL", "cat": "STRING", "amount": "DOUBLE"}, primary_key=["id"]
    )
    table.append([{"id": number, "cat": "ab"[number % 2], "amount": float(number)} for number in range(6)])
    return table


def refused() -> SparkSession:
    raise InvalidInputError("Spark did not start: java is not on PATH")


def refresher(catalog: Catalog, start: Start, seen: dict[str, Any]) -> FreshTables:
    def report(name: str, outcome: RefreshResult | Exception) -> None:
        seen[name] = outcome

    return FreshTables(RefreshOnDemand(start), catalog, system_environment().clock, report)


def test_small_refreshes_start_no_spark(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    quick = create_materialized_table(catalog, "shop.quick", QUICK, spark=spark)
    start, seen = Start(lambda: spark), dict[str, Any]()
    tables = refresher(catalog, start, seen)

    assert tables.run_once() == 1
    orders.upsert([{"id": 0, "cat": "b", "amount": 1.0}])
    assert tables.run_once() == 1

    assert stored_bag(quick.refresh()) == expected_bag(catalog, quick.refresh())
    assert (seen["shop.quick"].mode, seen["shop.quick"].engine) == ("incremental", "duckdb")
    assert start.begun == 0


def test_others_are_refreshed_while_spark_starts_for_one(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    for name, query in (("shop.slow", SLOW), ("shop.quick", QUICK)):
        create_materialized_table(catalog, name, query, spark=spark)
    start, seen = Start(lambda: spark), dict[str, Any]()
    tables = refresher(catalog, start, seen)

    assert tables.run_once() == 1
    assert list(seen) == ["shop.quick"]
    assert tables.run_once() == 0
    start.may_end.set()
    wait_until(lambda: tables.run_once() == 1)

    slow = catalog.load_table("shop.slow")
    assert stored_bag(slow) == expected_bag(catalog, slow)
    assert seen["shop.slow"].engine == "spark"
    assert start.begun == 1


def test_a_failed_start_of_spark_is_no_failure_of_the_table_and_ends_the_refresher(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    create_materialized_table(catalog, "shop.slow", SLOW, spark=spark)
    start, seen = Start(refused), dict[str, Any]()
    start.may_end.set()
    tables = refresher(catalog, start, seen)

    with pytest.raises(SparkStartError, match="java is not on PATH"):
        wait_until(lambda: tables.run_once() > 0)

    assert seen == {}
    assert start.begun == 1


def test_a_process_without_java_ends_at_once(
    spark: SparkSession,
    catalog: Catalog,
    orders: DynamicTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    create_materialized_table(catalog, "shop.quick", QUICK, spark=spark)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)

    assert main(["--warehouse", catalog.warehouse]) == 1

    assert f"Spark will not start: JAVA_HOME is {tmp_path}, which has no bin/java" in capsys.readouterr().err
