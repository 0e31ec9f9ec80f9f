"""AUTO applies changes or computes the whole query, whichever was faster lately; INCREMENTAL always applies changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from storage_lib.materialized.plan import refresh_plan
from storage_lib.materialized.plan.refresh_costs import ROWS_MIN, RefreshCosts, RefreshSize
from storage_lib.materialized.plan.refresh_result import RefreshWork
from storage_lib.schema.options.materialized_table import RefreshMode
from storage_lib.spark import create_materialized_table, refresh
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog

SIZE = RefreshSize(changed=100, stored=ROWS_MIN)


def known(full: float, *applied: float) -> RefreshCosts:
    costs = RefreshCosts()
    costs.record("q", RefreshWork.FULL, SIZE.stored, full)
    for seconds in applied:
        costs.record("q", RefreshWork.INCREMENTAL, SIZE.changed, seconds)
    return costs


def test_the_whole_query_is_computed_if_that_was_clearly_faster() -> None:
    assert known(1.0, 9.0, 3.0).why_full("q", SIZE) == (
        "computing the query takes about 1.0 s, and applying changes 3.0 s; "
        "with REFRESH_MODE = INCREMENTAL, changes are applied"
    )
    assert known(1.0, 9.0, 1.1).why_full("q", SIZE) is None
    assert known(3.0, 1.0, 1.0).why_full("q", SIZE) is None


def test_changes_that_are_applied_fast_are_applied_however_fast_the_whole_query_is() -> None:
    assert known(0.01, 0.4, 0.4).why_full("q", SIZE) is None
    assert known(0.01, 0.6, 0.6).why_full("q", SIZE) is not None


def test_one_measured_way_is_not_compared() -> None:
    assert known(1.0).why_full("q", SIZE) is None
    assert known(1.0, 9.0).why_full("q", SIZE) is None
    assert not known(1.0).knows("q")
    assert not RefreshCosts().knows("q")
    assert RefreshCosts().why_full("q", SIZE) is None


def test_times_grow_with_the_rows_and_do_not_shrink_with_them() -> None:
    costs = known(2.0, 1.0, 1.0)

    assert costs.why_full("q", RefreshSize(changed=1_000, stored=ROWS_MIN)) is not None
    assert costs.why_full("q", RefreshSize(changed=1_000, stored=5 * ROWS_MIN)) is None
    assert known(1.0, 3.0, 3.0).why_full("q", RefreshSize(changed=1, stored=ROWS_MIN)) is not None


def test_small_sources_are_not_compared() -> None:
    assert known(1.0, 9.0, 9.0).why_full("q", RefreshSize(changed=1, stored=ROWS_MIN - 1)) is None


def test_changes_get_another_chance_more_and_more_rarely() -> None:
    costs = known(1.0, 9.0, 9.0)
    waited = []
    for _ in range(3):
        chosen = 0
        while costs.why_full("q", SIZE) is not None:
            costs.record("q", RefreshWork.FULL, SIZE.stored, 1.0)
            chosen += 1
        waited.append(chosen)
        costs.record("q", RefreshWork.INCREMENTAL, SIZE.changed, 9.0)

    assert waited == [20, 40, 80]


def test_the_whole_query_is_measured_again_in_a_warm_process() -> None:
    costs = known(2.5, 1.0, 1.0)
    chosen = 0
    while (reason := costs.why_full("q", SIZE)) is None:
        costs.record("q", RefreshWork.INCREMENTAL, SIZE.changed, 1.0)
        chosen += 1

    assert chosen == 18
    assert reason.endswith("; the query is computed once to measure it again")
    costs.record("q", RefreshWork.FULL, SIZE.stored, 0.5)
    assert "with REFRESH_MODE = INCREMENTAL" in (costs.why_full("q", SIZE) or "")


def test_a_query_that_takes_much_longer_is_not_measured_again() -> None:
    assert known(9.0, *[1.0] * 100).why_full("q", SIZE) is None


def test_each_query_of_a_table_has_its_own_times_and_old_ones_are_forgotten() -> None:
    costs = known(1.0, 9.0, 9.0)
    assert costs.why_full("another", SIZE) is None

    for number in range(1_000):
        costs.record(f"q{number}", RefreshWork.FULL, SIZE.stored, 1.0)

    assert not costs.knows("q")


@pytest.mark.spark
def test_auto_changes_its_way_and_the_rows_stay_right(
    spark: SparkSession, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = RefreshCosts()
    monkeypatch.setattr(refresh_plan, "COSTS", costs)
    orders = catalog.create_table("shop.orders", {"id": "BIGINT", "amount": "BIGINT"}, primary_key=["id"])
    numbers = range(ROWS_MIN)
    orders.append(pa.table({"id": numbers, "amount": [number % 7 for number in numbers]}))
    query = "SELECT amount, count(*) AS n FROM orders GROUP BY amount"
    tables = [
        create_materialized_table(catalog, f"shop.{mode}", query, spark=spark, refresh_mode=mode)
        for mode in (RefreshMode.AUTO, RefreshMode.INCREMENTAL)
    ]
    for table in tables:
        refresh(spark, table)
        assert table.definition is not None
        for work, seconds in ((RefreshWork.FULL, 1.0), (RefreshWork.INCREMENTAL, 9.0), (RefreshWork.INCREMENTAL, 9.0)):
            costs.record(
                refresh_plan.query_of(table, table.definition),
                work,
                ROWS_MIN if work is RefreshWork.FULL else 1,
                seconds,
            )
    orders.append([{"id": 1, "amount": 100}])

    auto, incremental = (refresh(spark, table) for table in tables)

    assert (auto.mode, incremental.mode) == (RefreshWork.FULL, RefreshWork.INCREMENTAL)
    assert auto.reason.startswith("computing the query takes about 1.0 s")
    assert auto.rows_written == incremental.rows_written
    for table in tables:
        assert stored_bag(table) == expected_bag(catalog, table)
