"""Materialized tables are kept fresh by one session, whatever fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from storage_lib.materialized.plan.refresh_result import RefreshResult

pytest.importorskip("pyspark")

from pyspark.errors import PySparkException

from storage_lib import InvalidInputError
from storage_lib.io.environment import system_environment
from storage_lib.materialized.service.fresh_tables import FreshTables
from storage_lib.spark import create_materialized_table, refresh, resume, set_freshness, suspend
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.moved_clock import MovedClock
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

ORDERS = {"id": "BIGINT NOT NULL", "cat": "STRING", "amount": "BIGINT"}
SUMS = "SELECT cat, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cat"


class Reports:
    """Outcomes of refreshes, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, RefreshResult | Exception]] = []

    def __call__(self, name: str, outcome: RefreshResult | Exception) -> None:
        self.seen.append((name, outcome))

    def take(self) -> list[str]:
        """Return the tables of the outcomes since the last call, those of errors with an exclamation mark."""
        names = [f"{name}!" if isinstance(outcome, Exception) else name for name, outcome in self.seen]
        self.seen.clear()
        return names


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    table.append([{"id": number, "cat": "abc"[number % 3], "amount": number} for number in range(9)])
    return table


def fresh(spark: SparkSession, catalog: Catalog, reports: Reports, *names: str) -> FreshTables:
    return FreshTables(
        partial(refresh, spark), catalog, system_environment().clock, reports, names or None, (PySparkException,)
    )


def test_a_chain_and_a_diamond_are_fresh_after_one_round(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    create_materialized_table(catalog, "shop.large", "SELECT id, cat FROM orders WHERE amount > 3", spark=spark)
    create_materialized_table(
        catalog, "shop.both", "SELECT l.id, s.n FROM large l JOIN sums s ON l.cat = s.cat", spark=spark
    )
    reports = Reports()
    tables = fresh(spark, catalog, reports)
    tables.run_once()
    assert sorted(reports.take()) == ["shop.both", "shop.large", "shop.sums"]

    orders.upsert([{"id": 0, "cat": "b", "amount": 50}])
    assert tables.run_once() == 3

    for name in ("shop.sums", "shop.large", "shop.both"):
        table = catalog.load_table(name)
        assert stored_bag(table) == expected_bag(catalog, table)
    assert reports.take()[-1] == "shop.both"
    assert tables.run_once() == 0
    assert reports.take() == []


def test_a_suspended_table_is_left_alone_until_it_is_resumed(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    suspend(sums)
    reports = Reports()
    tables = fresh(spark, catalog, reports)

    assert tables.run_once() == 0
    resume(catalog.load_table("shop.sums"))
    assert tables.run_once() == 1


def test_a_table_with_a_freshness_waits_for_half_of_it(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    set_freshness(sums, "1 hour")
    reports = Reports()
    assert fresh(spark, catalog, reports).run_once() == 1
    orders.upsert([{"id": 0, "cat": "b", "amount": 50}])

    assert fresh(spark, catalog, reports).run_once() == 0
    later = FreshTables(partial(refresh, spark), catalog, MovedClock(31 * 60), report=reports)
    assert later.run_once() == 1


def test_a_table_that_fails_stops_no_other_and_is_tried_again_after_a_change(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    other = catalog.create_table("shop.other", {"id": "BIGINT NOT NULL"}, primary_key=["id"])
    other.append([{"id": 1}])
    query = "SELECT cat, id FROM orders WHERE amount >= 0"
    create_materialized_table(catalog, "shop.by_cat", query, spark=spark, primary_key=("cat",))
    create_materialized_table(catalog, "shop.copy", "SELECT id FROM other", spark=spark)
    reports = Reports()
    tables = fresh(spark, catalog, reports)

    tables.run_once()
    assert sorted(reports.take()) == ["shop.by_cat!", "shop.copy"]
    tables.run_once()
    assert reports.take() == []
    orders.delete("id >= 3")
    tables.run_once()
    assert reports.take() == ["shop.by_cat"]


def test_an_ordinary_table_that_is_named_is_an_error(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    with pytest.raises(InvalidInputError, match=r"shop\.orders is not a materialized table"):
        fresh(spark, catalog, Reports(), "shop.orders").run_once()


def test_the_process_refreshes_what_is_committed_and_ends_when_it_is_asked_to(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, tmp_path: Path
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    words = ["--warehouse", str(tmp_path / "warehouse"), "--poll-seconds", "0.1"]
    words += ["--conf", "spark.ui.enabled=false", "--conf", "spark.driver.memory=512m"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "storage_lib.spark.refresher", *words]
    with (
        (tmp_path / "errors").open("wb") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as running,
    ):
        try:
            assert running.stdout is not None
            first = json.loads(running.stdout.readline())
            orders.upsert([{"id": 0, "cat": "b", "amount": 50}])
            second = json.loads(running.stdout.readline())
        finally:
            running.send_signal(signal.SIGTERM)
        wait_until(lambda: running.poll() is not None)

    assert (first["table"], first["mode"], first["reason"]) == ("shop.sums", "full", "first refresh")
    assert (second["mode"], second["rows_read"]) == ("incremental", {"shop.orders": 2})
    assert running.returncode == 0
    assert stored_bag(sums.refresh()) == expected_bag(catalog, sums.refresh())
