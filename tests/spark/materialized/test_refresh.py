"""A refresh makes a materialized table equal to its query's answer, and writes only what differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from storage_lib import (
    AddColumn,
    AlterType,
    CommitConflictError,
    DropColumn,
    InvalidInputError,
    NotFoundError,
    RenameColumn,
)
from storage_lib.duckdb import duckdb_engine
from storage_lib.materialized.commit.refresh_commit import commit_difference
from storage_lib.materialized.plan.refresh_result import RefreshEngine, RefreshWork
from storage_lib.materialized.service.staleness import staleness
from storage_lib.spark import create_materialized_table, refresh, set_query, suspend
from storage_lib.spark.engine import apply_changes
from storage_lib.spark.engine.commit_difference import commit_difference_of
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from storage_lib.catalog.catalog import Catalog
    from storage_lib.table.dynamic_table import DynamicTable

ORDERS = {"id": "BIGINT NOT NULL", "cat": "STRING", "amount": "BIGINT"}
SUMS = "SELECT cat, count(*) AS n, sum(amount) AS total FROM orders GROUP BY cat"


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    table = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    table.append([{"id": number, "cat": "abc"[number % 3], "amount": number} for number in range(9)])
    return table


def before_a_commit(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Do something once, right before the commit of rows by whichever engine."""
    actions = [action]

    def first(commit: Callable[..., object]) -> Callable[..., object]:
        def committed(*arguments: object, **named: object) -> object:
            if actions:
                actions.pop()()
            return commit(*arguments, **named)

        return committed

    monkeypatch.setattr(apply_changes, "commit_difference_of", first(commit_difference_of))
    monkeypatch.setattr(duckdb_engine, "commit_difference", first(commit_difference))


def assert_is_answer(catalog: Catalog, table: DynamicTable) -> None:
    assert stored_bag(table.refresh()) == expected_bag(catalog, table.refresh())


def test_changes_of_a_source_change_the_rows_of_their_groups_only(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    first = refresh(spark, sums)
    orders.upsert([{"id": 0, "cat": "b", "amount": 5}])

    second = refresh(spark, sums)

    assert (first.mode, first.reason, first.rows_read) == (RefreshWork.FULL, "first refresh", {"shop.orders": 9})
    assert (second.mode, second.rows_read) == (RefreshWork.INCREMENTAL, {"shop.orders": 2})
    assert second.positions == {"shop.orders": 2}
    assert_is_answer(catalog, sums)
    changed = sums.changes(start_snapshot_id=first.snapshot_id, end_snapshot_id=second.snapshot_id).read_all()
    assert set(changed["cat"].to_pylist()) == {"a", "b"}


def test_a_refresh_without_a_change_commits_nothing_and_one_after_a_compaction_only_the_position(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    first = refresh(spark, sums)

    again = refresh(spark, sums)
    orders.upsert([{"id": 0, "cat": "a", "amount": 0}])
    orders.compact()
    moved = refresh(spark, sums)

    assert (again.mode, again.snapshot_id, again.reason) == (RefreshWork.NONE, None, "no source has changed")
    assert (moved.mode, moved.rows_written, moved.positions) == (RefreshWork.INCREMENTAL, 0, {"shop.orders": 3})
    assert moved.snapshot_id == (first.snapshot_id or 0) + 1
    assert_is_answer(catalog, sums)


def test_a_full_refresh_writes_nothing_if_the_rows_are_the_answer(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark, refresh_mode="full")
    refresh(spark, sums)

    requested = refresh(spark, sums, full=True)
    orders.append([{"id": 20, "cat": "d", "amount": 1}])
    moved = refresh(spark, sums)

    assert (requested.mode, requested.snapshot_id) == (RefreshWork.FULL, None)
    assert (moved.mode, moved.reason, moved.rows_written) == (RefreshWork.FULL, "refresh mode FULL", 1)
    assert_is_answer(catalog, sums)
    assert not orders.consumers.list()


@pytest.mark.parametrize("kind", ["another column of the same name", "two names swapped"])
def test_an_altered_source_is_read_again_although_it_has_no_new_snapshot(
    spark: SparkSession, catalog: Catalog, engine: RefreshEngine, kind: str
) -> None:
    table = catalog.create_table(
        "shop.orders", {"id": "BIGINT NOT NULL", "a": "BIGINT", "b": "BIGINT"}, primary_key=["id"]
    )
    table.append([{"id": 1, "a": 2, "b": 3}, {"id": 2, "a": 0, "b": 4}])
    sums = create_materialized_table(catalog, "shop.sums", "SELECT sum(b) AS s FROM orders", spark=spark)
    refresh(spark, sums)
    if kind == "two names swapped":
        table.alter(RenameColumn("a", "x"), RenameColumn("b", "a"), RenameColumn("x", "b"))
    else:
        table.alter(DropColumn("b")).alter(AddColumn("b", "BIGINT"))
    newest = sums.refresh()
    assert newest.definition is not None
    assert staleness(newest, newest.definition).is_new

    altered = refresh(spark, sums)

    assert (altered.mode, altered.engine) == (RefreshWork.FULL, engine)
    assert altered.reason == "column b of source shop.orders was altered"
    # The column of this name has other values now.
    expected = 2 if kind == "two names swapped" else None
    assert sums.to_arrow()["s"].to_pylist() == [expected]
    assert refresh(spark, sums).mode is RefreshWork.NONE
    table.refresh().alter(AddColumn("unread", "STRING"))
    assert refresh(spark, sums).mode is RefreshWork.NONE
    assert not staleness(sums.refresh(), newest.definition).is_new


def test_an_empty_source_has_an_answer(spark: SparkSession, catalog: Catalog) -> None:
    orders = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    counted = create_materialized_table(catalog, "shop.counted", "SELECT count(*) AS n FROM orders", spark=spark)

    first = refresh(spark, counted)
    assert counted.to_arrow().to_pylist() == [{"n": 0}]
    orders.append([{"id": 1, "cat": None, "amount": 4}])
    second = refresh(spark, counted)

    assert (first.positions, second.positions) == ({"shop.orders": 0}, {"shop.orders": 1})
    assert second.mode is RefreshWork.INCREMENTAL
    assert counted.to_arrow().to_pylist() == [{"n": 1}]


def test_a_key_is_derived_only_if_it_is_never_null(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    by_id = create_materialized_table(catalog, "shop.by_id", "SELECT id, amount FROM orders", spark=spark)
    by_category = create_materialized_table(catalog, "shop.by_category", SUMS, spark=spark)
    orders.append([{"id": 30, "cat": None, "amount": 1}])

    refresh(spark, by_category)

    assert by_id.schema.primary_keys == ("id",)
    assert by_category.schema.primary_keys == ()
    assert_is_answer(catalog, by_category)


def test_equal_rows_are_counted(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    table = create_materialized_table(catalog, "shop.cats", "SELECT cat FROM orders", spark=spark)
    refresh(spark, table)
    orders.delete("id in (0, 3)")
    orders.append([{"id": 40, "cat": "b", "amount": 1}])

    result = refresh(spark, table)

    assert result.mode is RefreshWork.INCREMENTAL
    assert sorted(table.to_arrow()["cat"].to_pylist()) == ["a", "b", "b", "b", "b", "c", "c", "c"]


@pytest.mark.parametrize(("cat", "words"), [("b", r"share the key .*'cat': 'b'"), (None, "cat")])
def test_an_answer_that_violates_the_key_is_refused_before_anything_is_written(
    spark: SparkSession, catalog: Catalog, cat: str | None, words: str
) -> None:
    orders = catalog.create_table("shop.orders", ORDERS, primary_key=["id"])
    orders.append([{"id": 1, "cat": "a", "amount": 1}, {"id": 2, "cat": "b", "amount": 1}])
    table = create_materialized_table(
        catalog, "shop.t", "SELECT cat, amount FROM orders", spark=spark, primary_key=["cat"]
    )
    refresh(spark, table)
    orders.append([{"id": 3, "cat": cat, "amount": 2}])

    with pytest.raises(InvalidInputError, match=words):
        refresh(spark, table)

    assert table.inspect.latest_snapshot_id() == 1
    assert table.inspect.lease_holder() is None
    assert_is_answer(catalog, table)
    orders.delete("id = 3")
    refresh(spark, table)
    assert_is_answer(catalog, table)


def test_sources_whose_changes_are_unknown_are_read_in_full_and_only_differences_are_written(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    refresh(spark, sums)
    reasons = []

    def refreshed() -> None:
        result = refresh(spark, sums)
        assert result.mode is RefreshWork.FULL
        assert_is_answer(catalog, sums)
        reasons.append(result.reason)

    orders.upsert([{"id": 0, "cat": "b", "amount": 7}], change_tracking=False)
    refreshed()
    for consumer in orders.consumers.list():
        orders.consumers.delete(consumer.name)
    orders.upsert([{"id": 1, "cat": "b", "amount": 7}])
    orders.upsert([{"id": 2, "cat": "b", "amount": 7}])
    orders.maintenance.expire_snapshots(retain_last=1)
    refreshed()
    orders.alter(RenameColumn("amount", "cents"), AddColumn("amount", "BIGINT")).upsert(
        [{"id": 1, "cat": "b", "cents": 1, "amount": 2}]
    )
    refreshed()
    catalog.drop_table("shop.orders")
    with pytest.raises(NotFoundError, match=r"shop.sums reads shop.orders"):
        refresh(spark, sums)
    catalog.create_table("shop.orders", ORDERS, primary_key=["id"]).append([{"id": 1, "cat": "b", "amount": 2}])
    refreshed()

    assert reasons == [
        "snapshot 2 of source shop.orders changed rows without change tracking",
        "snapshot 2 of source shop.orders has expired",
        "column amount of source shop.orders was altered",
        "source shop.orders was not read before, or was recreated",
    ]


def test_a_source_whose_column_has_another_type_now_fails_the_refresh_until_the_query_casts_it(
    spark: SparkSession, catalog: Catalog
) -> None:
    source = catalog.create_table("shop.s", {"id": "INT NOT NULL", "n": "INT"}, primary_key=["id"])
    source.append([{"id": 1, "n": 1}])
    table = create_materialized_table(catalog, "shop.t", "SELECT id, n FROM s", spark=spark)
    refresh(spark, table)
    source.alter(AlterType("n", "BIGINT")).append([{"id": 2, "n": 1 << 40}])

    with pytest.raises(InvalidInputError, match=r"column n of its query's answer is bigint now.*is int"):
        refresh(spark, table)

    assert table.to_arrow().to_pylist() == [{"id": 1, "n": 1}]
    set_query(table, "SELECT id, CAST(n % 100 AS INT) AS n FROM s", spark=spark)
    refresh(spark, table)
    assert_is_answer(catalog, table)


def test_a_rolled_back_table_is_refreshed_from_the_positions_of_its_rows(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    first = refresh(spark, sums)
    orders.delete("cat = 'a'")
    refresh(spark, sums)
    sums.rollback_to(snapshot_id=first.snapshot_id)
    assert_is_answer(catalog, sums)

    again = refresh(spark, sums)

    assert (again.mode, again.rows_read) == (RefreshWork.INCREMENTAL, {"shop.orders": 3})
    assert_is_answer(catalog, sums)


def test_the_snapshot_of_the_position_does_not_expire_until_the_table_is_suspended(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    refresh(spark, sums)
    orders.delete("id = 1")
    orders.delete("id = 2")

    orders.maintenance.expire_snapshots(retain_last=1)
    kept = refresh(spark, sums)
    suspend(sums)
    orders.delete("id = 3")
    orders.maintenance.expire_snapshots(retain_last=1)
    lost = refresh(spark, sums)

    assert kept.mode is RefreshWork.INCREMENTAL
    assert lost.reason == "snapshot 3 of source shop.orders has expired"
    assert_is_answer(catalog, sums)
    assert not orders.consumers.list()


def test_the_table_that_another_process_has_refreshed_meanwhile_is_left_as_it_is(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch, engine: RefreshEngine
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    refresh(spark, sums)
    orders.delete("id = 1")
    others = []
    before_a_commit(monkeypatch, lambda: others.append(refresh(spark, catalog.load_table("shop.sums"))))
    slower = refresh(spark, sums)

    assert [each.mode for each in others] == [RefreshWork.INCREMENTAL]
    assert (slower.mode, slower.reason) == (RefreshWork.NONE, "another refresh has made the table current")
    assert sums.inspect.latest_snapshot_id() == 2
    assert_is_answer(catalog, sums)


def test_a_refresh_with_an_older_query_conflicts_with_one_with_the_newer(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch, engine: RefreshEngine
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)
    refresh(spark, sums)
    orders.delete("id = 1")

    def refresh_another() -> None:
        set_query(sums, f"{SUMS} HAVING count(*) > 2", spark=spark)
        refresh(spark, catalog.load_table("shop.sums"))

    before_a_commit(monkeypatch, refresh_another)
    slower = refresh(spark, sums)

    assert slower.mode is RefreshWork.NONE
    assert_is_answer(catalog, sums)
    assert len(stored_bag(sums)) == 2


def test_a_partition_is_computed_again(spark: SparkSession, catalog: Catalog, orders: DynamicTable) -> None:
    table = create_materialized_table(
        catalog,
        "shop.by_cat",
        "SELECT coalesce(cat, '') AS cat, id, amount FROM orders",
        spark=spark,
        primary_key=["cat", "id"],
        partition_keys=["cat"],
    )
    refresh(spark, table)
    orders.upsert([{"id": 0, "cat": "b", "amount": 5}])

    result = refresh(spark, table, partition={"cat": "a"})

    assert result.mode is RefreshWork.INCREMENTAL
    assert_is_answer(catalog, table)
    with pytest.raises(InvalidInputError, match="partition"):
        refresh(spark, table, partition={"id": 3})


def test_an_ordinary_table_is_not_refreshed(spark: SparkSession, orders: DynamicTable) -> None:
    with pytest.raises(InvalidInputError, match="not a materialized table"):
        refresh(spark, orders)


def test_a_refresh_that_always_conflicts_fails_in_the_end(
    spark: SparkSession, catalog: Catalog, orders: DynamicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    sums = create_materialized_table(catalog, "shop.sums", SUMS, spark=spark)

    def commit_refused(*_: object) -> None:
        message = "another commit was faster"
        raise CommitConflictError(message)

    monkeypatch.setattr(duckdb_engine, "commit_difference", commit_refused)

    with pytest.raises(CommitConflictError, match="another commit was faster"):
        refresh(spark, sums)

    assert orders.to_arrow().num_rows == 9
    assert sums.inspect.latest_snapshot_id() is None
