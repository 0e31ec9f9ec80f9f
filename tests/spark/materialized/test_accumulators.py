"""Sums and counts are kept by accumulators: a refresh reads changes only, and is exact after crashes and races."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from storage_lib import open_catalog
from storage_lib.duckdb import duckdb_engine
from storage_lib.materialized.accumulators.accumulated_state import ACCUMULATORS
from storage_lib.materialized.plan.refresh_result import RefreshEngine, RefreshWork
from storage_lib.materialized.sources.source_positions import recorded_position
from storage_lib.spark import create_materialized_table, refresh, set_query
from storage_lib.spark.engine import accumulated_refresh, computed_once
from tests.support.deep_tests import thinned
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

ALWAYS = {"accumulators.rows-min": "0"}
READ_SOURCE = "storage_lib.spark.engine.apply_changes.rows_of_source"
READ_SNAPSHOT = "storage_lib.duckdb.refresh_in_duckdb.SnapshotRows.select"
ORDERS = {"id": "INT NOT NULL", "cat": "STRING", "amount": "BIGINT", "price": "DECIMAL(12, 2)", "day": "DATE"}
QUERIES = {
    "sums": "SELECT cat, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cat",
    "large": "SELECT cat, day, sum(amount * 2) + 1 AS s FROM orders GROUP BY cat, day HAVING count(*) > 1",
    "whole": "SELECT count(*) AS n, sum(price) AS p, count(cat) AS c FROM orders",
    "kinds": "SELECT DISTINCT cat FROM orders",
    "marked": "SELECT count(*) FILTER (WHERE amount > 3) AS n FROM orders GROUP BY cat",
}


class Crash(BaseException):
    """Ends a refresh where a process could be killed."""


def after_the_state(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Do something right after the commit of a state, by whichever engine."""

    def then(commit: Callable[..., Any]) -> Callable[..., Any]:
        def committed(*arguments: Any, **named: Any) -> Any:
            done = commit(*arguments, **named)
            action()
            return done

        return committed

    for module, name in ((duckdb_engine, "commit_state"), (accumulated_refresh, "commit_state_of")):
        monkeypatch.setattr(module, name, then(getattr(module, name)))


def crash() -> None:
    raise Crash


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    table.append([order(number, "abc"[number % 3], number) for number in range(9)])
    return table


def order(number: int, cat: str | None, amount: int | None) -> dict[str, object]:
    price = None if amount is None else Decimal(amount % 1000).scaleb(-2)
    day = None if number % 2 else date(2026, 1, 2)
    return {"id": number, "cat": cat, "amount": amount, "price": price, "day": day}


def sums(spark: SparkSession, catalog: Catalog, name: str = "sums") -> DynamicTable:
    return create_materialized_table(catalog, f"shop.{name}", QUERIES[name], spark=spark, options=ALWAYS)


def state_of(catalog: Catalog, table: DynamicTable) -> DynamicTable:
    position = recorded_position(table.inspect.source_positions(table.inspect.latest_snapshot_id() or 0), ACCUMULATORS)
    assert position is not None
    assert position.mark is not None
    return catalog.load_table(f"{table.name}$state_{position.mark.partition('/')[0]}")


def assert_is_answer(catalog: Catalog, table: DynamicTable) -> None:
    assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())


def test_a_refresh_reads_no_rows_of_the_source_but_the_changes(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch, engine: RefreshEngine
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    orders.upsert([order(0, None, 5), order(1, "c", None)])
    orders.delete("id in (2, 5, 8)")

    def refuse(*_: object) -> None:
        message = "a source was read"
        raise AssertionError(message)

    monkeypatch.setattr(READ_SOURCE, refuse)
    monkeypatch.setattr(READ_SNAPSHOT, refuse)
    result = refresh(spark, table)

    assert (result.mode, result.engine) == (RefreshWork.INCREMENTAL, engine)
    assert result.rows_read == {"shop.orders": 7}
    assert_is_answer(catalog, table)
    assert len(catalog.states("shop.sums")) == 1
    assert catalog.list_tables() == ["shop.orders", "shop.sums"]


@pytest.mark.timeout(1800)  # minutes on an idle machine
@pytest.mark.parametrize(
    ("seed", "rows_here", "steps"),
    thinned([pytest.param(2, 2, 3), pytest.param(2, 2, 5), pytest.param(1, 20_000, 5), pytest.param(3, 0, 5)]),
)
def test_every_refresh_of_a_random_life_with_crashes_is_exact(
    spark: SparkSession,
    catalog: Catalog,
    orders: DynamicTable,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rows_here: int,
    steps: int,
    engine: RefreshEngine,
) -> None:
    monkeypatch.setattr(computed_once, "ROWS_HERE_MAX", rows_here)
    rng = random.Random(seed)  # noqa: S311  a seeded history
    tables = [sums(spark, catalog, name) for name in QUERIES]
    history: list[str] = []

    for step in range(steps):
        for _ in range(rng.randrange(3)):
            number, amount = rng.randrange(14), rng.choice([None, *range(8)])
            orders.upsert([order(number, rng.choice([None, "a", "b", "d"]), amount)])
        if rng.random() < 0.4:
            orders.delete(f"id > {rng.randrange(12)}")
        for table in tables:
            action = rng.choice(["refresh", "refresh", "crash", "full", "roll back"]) if step else "refresh"
            history.append(f"{table.name} {action}")
            if action == "crash":
                with monkeypatch.context() as patched:
                    after_the_state(patched, crash)
                    with suppress(Crash):
                        refresh(spark, table, full=rng.random() < 0.3)
            if action == "roll back":
                table.rollback_to(snapshot_id=rng.randrange(1, (table.inspect.latest_snapshot_id() or 1) + 1))
            refresh(spark, table, full=action == "full")
            assert stored_bag(table) == expected_bag(catalog, table), (seed, history)


def test_a_refresh_that_ended_between_its_commits_is_rolled_back_and_not_counted(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch, engine: RefreshEngine
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    state = state_of(catalog, table)
    orders.upsert([order(0, "b", 5)])

    with monkeypatch.context() as patched:
        after_the_state(patched, crash)
        with pytest.raises(Crash):
            refresh(spark, table)
    orphan = state.inspect.latest_snapshot_id() or 0
    orders.upsert([order(1, "b", 6)])
    result = refresh(spark, table)

    assert orphan == 2
    assert (result.mode, result.rows_read) == (RefreshWork.INCREMENTAL, {"shop.orders": 4})
    assert state.inspect.latest_snapshot_id() == orphan + 2
    assert_is_answer(catalog, table)


def test_of_two_refreshes_at_once_one_wins_and_nothing_is_counted_twice(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch, engine: RefreshEngine
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    orders.upsert([order(0, "b", 5)])
    others: list[Any] = []

    def refresh_another() -> None:
        if not others:
            others.append(None)
            others[0] = refresh(spark, catalog.load_table("shop.sums"))

    with monkeypatch.context() as patched:
        after_the_state(patched, refresh_another)
        slower = refresh(spark, table)

    assert [each.mode for each in others] == [RefreshWork.INCREMENTAL]
    assert (slower.mode, slower.reason) == (RefreshWork.NONE, "another refresh has made the table current")
    orders.upsert([order(0, "c", 6)])
    assert refresh(spark, table).mode is RefreshWork.INCREMENTAL
    assert_is_answer(catalog, table)


def test_a_missing_state_is_built_again_by_one_full_refresh(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    shutil.rmtree(Path(state_of(catalog, table).location))
    orders.upsert([order(0, "b", 5)])
    results = [refresh(spark, table)]
    orders.upsert([order(1, "b", 5)])
    results.append(refresh(spark, table))

    assert [each.mode for each in results] == [RefreshWork.FULL, RefreshWork.INCREMENTAL]
    assert results[0].reason == "the accumulators are missing"
    assert_is_answer(catalog, table)


def test_a_damaged_state_is_built_again_by_one_full_refresh(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    for path in Path(state_of(catalog, table).location).glob("bucket-0/*"):
        path.write_bytes(b"not a data file")
    orders.upsert([order(0, "b", 5)])
    result = refresh(spark, table)

    assert result.mode is RefreshWork.FULL
    assert result.reason.startswith("the accumulators can't be read: ")
    assert_is_answer(catalog, table)


def test_a_new_query_and_a_session_without_ansi_leave_no_state_that_is_wrong(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    reasons = []
    try:
        spark.conf.set("spark.sql.ansi.enabled", "false")
        orders.upsert([order(0, "b", 5)])
        reasons.append(refresh(spark, table).reason)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert_is_answer(catalog, table)
    for query in (QUERIES["sums"], QUERIES["sums"] + " HAVING count(*) > 2"):
        set_query(table, query, spark=spark)
        orders.upsert([order(1, "b", 5)])
        reasons.append(refresh(spark, table).reason)
        assert_is_answer(catalog, table)

    # The refresh in the session without ANSI ran under the settings of the table, so that its state is as good as any.
    assert reasons == [
        "the changes of the sources are known",
        "the changes of the sources are known",
        "the query was changed",
    ]


def test_averages_and_sums_have_the_digits_of_spark(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    rng = random.Random(3)  # noqa: S311  seeded values
    columns = {"id": "INT NOT NULL", "k": "INT", "i": "INT", "d": "DECIMAL(15, 2)", "wide": "DECIMAL(38, 6)"}
    source = catalog.create_table("shop.numbers", columns, primary_key=["id"])

    def row(number: int) -> dict[str, object]:
        whole = rng.randrange(-(10**15), 10**15)
        return {
            "id": number,
            "k": rng.randrange(4),
            "i": rng.randrange(-(2**31), 2**31),
            "d": Decimal(whole).scaleb(-2),
            "wide": Decimal(rng.randrange(-(10**27), 10**27)).scaleb(-6),
        }

    source.append([row(number) for number in range(60)])
    query = (
        "SELECT k, avg(i) AS ai, avg(d) AS ad, sum(wide) AS sw, sum(d) AS sd, count_if(i > 0) AS n"
        " FROM numbers GROUP BY k"
    )
    table = create_materialized_table(catalog, "shop.averages", query, spark=spark, options=ALWAYS)
    refresh(spark, table)
    source.upsert([row(number) for number in range(20)])
    source.delete("id > 50")
    result = refresh(spark, table)

    spark.createDataFrame(source.to_arrow()).createOrReplaceTempView("numbers")
    assert result.mode is RefreshWork.INCREMENTAL
    expected = {tuple(each) for each in spark.sql(query).collect()}
    assert {tuple(each.values()) for each in table.to_arrow().to_pylist()} == expected


def test_a_table_whose_sources_have_grown_builds_accumulators_once(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = create_materialized_table(
        catalog, "shop.sums", QUERIES["sums"], spark=spark, options={"accumulators.rows-min": "12"}
    )
    refresh(spark, table)
    orders.upsert([order(9, "a", 5)])
    small = refresh(spark, table)
    states = catalog.states("shop.sums")
    orders.upsert([order(number, "b", 5) for number in range(10, 14)])
    grown = refresh(spark, table)
    orders.delete("id < 12")
    orders.compact(full=True)
    shrunk = refresh(spark, table)

    assert (small.mode, states) == (RefreshWork.INCREMENTAL, [])
    assert (grown.mode, grown.reason) == (RefreshWork.FULL, "the table has no accumulators yet")
    assert shrunk.mode is RefreshWork.INCREMENTAL
    assert recorded_position(table.inspect.source_positions(shrunk.snapshot_id or 0), ACCUMULATORS) is not None
    assert_is_answer(catalog, table)


def test_a_sum_that_overflows_fails_as_the_query_does_until_the_source_is_corrected(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    table = sums(spark, catalog)
    refresh(spark, table)
    orders.upsert([order(0, "a", 2**62), order(3, "a", 2**62)])

    with pytest.raises(Exception, match=r"(?i)overflow|out of range|OUT_OF_RANGE"):
        refresh(spark, table)
    orders.upsert([order(3, "a", -(2**62))])
    result = refresh(spark, table)

    assert result.mode is RefreshWork.INCREMENTAL
    assert_is_answer(catalog, table)


def test_a_state_is_renamed_and_dropped_with_its_table(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    refresh(spark, sums(spark, catalog))
    catalog.rename_table("shop.sums", "shop.totals")
    orders.upsert([order(0, "b", 5)])
    table = open_catalog(catalog.warehouse).load_table("shop.totals")

    result = refresh(spark, table)
    assert_is_answer(catalog, table)
    catalog.drop_table("shop.totals")

    assert result.mode is RefreshWork.INCREMENTAL
    assert not Path(table.location).exists()
