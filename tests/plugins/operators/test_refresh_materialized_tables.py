"""The operators that refresh, suspend and resume a materialized table, on real tables and a real Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.operators.refresh_materialized_table import RefreshMaterializedTableOperator
from dynamic_table.operators.set_refresh_status import SetRefreshStatusOperator
from dynamic_table.operators.spark_operator import SparkOperator
from dynamic_table.retry_policy import StorageRetryPolicy
from dynamic_table.versions.sdk_exceptions import AirflowSkipException
from storage_lib import Catalog, DynamicTable, SetOption, open_catalog
from storage_lib.errors import CommitConflictError, InvalidInputError, NotFoundError
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.task_context import announced, task_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark]

QUERY = "SELECT item, count(*) AS orders, sum(amount) AS turnover FROM orders GROUP BY item"


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    return open_catalog(str(warehouse), {"log.system": "none"})


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    """Create the source: two orders of pens."""
    table = catalog.create_table(
        "shop.orders", {"id": "BIGINT", "item": "STRING", "amount": "BIGINT"}, primary_key=["id"]
    )
    table.append([{"id": 1, "item": "pen", "amount": 2}, {"id": 2, "item": "pen", "amount": 3}])
    return table


@pytest.fixture
def by_item(catalog: Catalog, orders: DynamicTable, one_spark: SparkSession) -> DynamicTable:
    from storage_lib.spark import create_materialized_table

    return create_materialized_table(catalog, "shop.by_item", QUERY, spark=one_spark)


@pytest.fixture
def one_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Let the operators use the session of all tests, which they must not stop."""

    @contextmanager
    def shared(_: SparkOperator) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(SparkOperator, "spark", shared)
    return spark


def refreshed(name: str = "shop.by_item", **arguments: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run the operator; return its result and the events that it emits."""
    context = task_context(task := RefreshMaterializedTableOperator(task_id="refresh", table=name, **arguments))
    result = task.execute(context)
    assert json.loads(json.dumps(result)) == result
    return result, announced(context)


def test_a_refresh_reports_its_work_and_emits_the_asset_with_the_snapshot(
    catalog: Catalog, orders: DynamicTable, by_item: DynamicTable
) -> None:
    first, [event] = refreshed()
    orders.upsert([{"id": 2, "item": "ink", "amount": 4}])
    second, [other] = refreshed()

    assert (first["mode"], first["reason"], first["version"]) == ("full", "first refresh", 1)
    assert (second["mode"], second["version"], second["rows_written"]) == ("incremental", 2, 3)
    assert (second["rows_read"], second["positions"]) == ({"shop.orders": 2}, {"shop.orders": 2})
    assert second["seconds"] > 0
    assert (event["uri"], event["op"]) == ("dynamic-table://shop/by_item", "refresh")
    assert {key: other[key] for key in ("version", "mode", "rows_read", "rows_written", "seconds", "reason")} == {
        key: second[key] for key in ("version", "mode", "rows_read", "rows_written", "seconds", "reason")
    }
    assert stored_bag(by_item) == expected_bag(catalog, by_item)


@pytest.fixture
def no_spark(by_item: DynamicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a task that starts Spark, which creates the table only."""

    def started(_: SparkOperator) -> Any:
        message = "Spark was started"
        raise AssertionError(message)

    monkeypatch.setattr(SparkOperator, "spark", started)


def test_a_table_that_is_current_starts_no_spark_and_emits_nothing(no_spark: None) -> None:
    refreshed()

    result, events = refreshed()

    assert (result["mode"], result["version"], result["reason"]) == ("none", None, "no source has changed")
    assert events == []


def test_a_table_that_is_current_starts_no_spark_whatever_its_settings(no_spark: None) -> None:
    refreshed()

    assert refreshed(spark_conf={"spark.sql.ansi.enabled": "false"})[0]["mode"] == "none"


def test_the_first_rows_of_a_source_that_was_empty_need_no_spark(
    catalog: Catalog, orders: DynamicTable, by_item: DynamicTable, no_spark: None
) -> None:
    catalog.drop_table("shop.orders")
    columns = {"id": "BIGINT", "item": "STRING", "amount": "BIGINT"}
    empty = catalog.create_table("shop.orders", columns, primary_key=["id"])
    modes = [refreshed()[0]["mode"]]
    empty.append([{"id": 1, "item": "pen", "amount": 2}, {"id": 2, "item": "pen", "amount": 3}])
    modes += [refreshed()[0]["mode"]]

    assert modes == ["full", "incremental"]
    assert stored_bag(by_item) == expected_bag(catalog, by_item)


def test_small_changes_and_small_tables_are_refreshed_without_spark(
    catalog: Catalog, orders: DynamicTable, by_item: DynamicTable, no_spark: None
) -> None:
    modes = [refreshed()[0]["mode"]]
    orders.upsert([{"id": 2, "item": "ink", "amount": 4}])
    modes += [refreshed(master="local[1]", spark_conf={"spark.driver.memory": "2g"})[0]["mode"]]
    modes += [refreshed(full="true")[0]["mode"]]
    for number in range(12):
        orders.upsert([{"id": 3, "item": f"item {number}", "amount": number}])
        modes += [refreshed()[0]["mode"]]
        assert stored_bag(by_item) == expected_bag(catalog, by_item)

    assert modes == ["full", "incremental", "full", *["incremental"] * 12]
    assert "COMPACT" in by_item.inspect.snapshots()["commit_kind"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ({"spark_conf": {"spark.sql.ansi.enabled": "false"}}, {}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--conf spark.sql.ansi.enabled=false pyspark-shell"}),
        ({}, {"SPARK_REMOTE": "sc://127.0.0.1:15002"}),
        ({}, {"SPARK_CONF_DIR": "conf"}),
        ({}, {"PYSPARK_SUBMIT_ARGS": "--properties-file my.conf pyspark-shell"}),
        ({}, {"SPARK_SUBMIT_OPTS": "-Dspark.sql.ansi.enabled=false"}),
        ({}, {"JDK_JAVA_OPTIONS": "-Dspark.sql.ansi.enabled=false"}),
        ({}, {"SPARK_ANSI_SQL_MODE": "false"}),
        ({}, {"SPARK_API_MODE": "connect"}),
    ],
)
def test_a_refresh_whose_session_has_unusual_settings_is_computed_by_spark(
    no_spark: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    environment: dict[str, str],
) -> None:
    (tmp_path / "conf").mkdir()
    settings = "# r\xe9glages\nspark.sql.legacy.literal.pickMinimumPrecision  false\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_bytes(settings.encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(AssertionError, match="Spark was started"):
        refreshed(**arguments)


@pytest.mark.parametrize("option", ["refresh.in-process-size-max", "accumulators.rows-min"])
def test_what_duckdb_does_not_compute_is_left_to_spark_with_nothing_written(
    orders: DynamicTable, by_item: DynamicTable, no_spark: None, option: str
) -> None:
    refreshed()
    by_item.alter(SetOption(option, "0" if option.endswith("min") else "0 b"))
    orders.upsert([{"id": 2, "item": "ink", "amount": 4}])

    with pytest.raises(AssertionError, match="Spark was started"):
        refreshed()

    assert by_item.inspect.latest_snapshot_id() == 1


def test_a_full_refresh_on_request_writes_nothing_if_nothing_differs(by_item: DynamicTable) -> None:
    refreshed()

    result, events = refreshed(full="true")

    assert (result["mode"], result["reason"], result["rows_written"], events) == ("full", "requested", 0, [])


def test_a_suspended_table_is_skipped_with_a_reason_and_refreshed_on_request(
    orders: DynamicTable, by_item: DynamicTable
) -> None:
    status = SetRefreshStatusOperator(task_id="suspend", table="shop.by_item", change="suspend")
    assert status.execute(task_context(status)) == {"table": "shop.by_item", "op": "suspend", "status": "suspended"}
    context = task_context(task := RefreshMaterializedTableOperator(task_id="refresh", table="shop.by_item"))

    with pytest.raises(AirflowSkipException, match=r"shop\.by_item is suspended"):
        task.execute(context)

    skipped = context["ti"].pushed["return_value"]  # type: ignore[attr-defined]
    assert (skipped["mode"], skipped["version"]) == ("skipped", None)
    assert announced(context) == []
    assert refreshed(even_if_suspended="True")[0]["mode"] == "full"
    back = SetRefreshStatusOperator(task_id="resume", table="shop.by_item", change="resume")
    assert back.execute(task_context(back))["status"] == "activated"
    assert refreshed()[0]["mode"] == "none"


def test_a_refresh_that_violates_the_key_fails_without_a_retry_and_keeps_the_rows(
    catalog: Catalog, orders: DynamicTable, one_spark: SparkSession
) -> None:
    from storage_lib.spark import create_materialized_table

    query = "SELECT item, id FROM orders"
    orders.upsert([{"id": 2, "item": "ink", "amount": 3}])
    table = create_materialized_table(catalog, "shop.one_each", query, spark=one_spark, primary_key=["item"])
    refreshed("shop.one_each")
    before = stored_bag(table)
    orders.append([{"id": 3, "item": "pen", "amount": 1}])

    with pytest.raises(InvalidInputError, match=r"pen") as failure:
        refreshed("shop.one_each")

    assert not is_retried(failure.value)
    assert (stored_bag(table), table.inspect.latest_snapshot_id()) == (before, 1)


def test_a_dropped_table_a_dropped_source_and_an_ordinary_table_fail_without_a_retry(
    catalog: Catalog, orders: DynamicTable, by_item: DynamicTable
) -> None:
    with pytest.raises(InvalidInputError, match=r"shop\.orders is not a materialized table"):
        refreshed("shop.orders")
    catalog.drop_table("shop.orders")
    with pytest.raises(NotFoundError, match=r"shop\.by_item reads shop\.orders") as lost:
        refreshed()
    catalog.drop_table("shop.by_item")
    with pytest.raises(NotFoundError, match=r"shop\.by_item") as gone:
        refreshed()

    assert [is_retried(each.value) for each in (lost, gone)] == [False, False]
    assert is_retried(CommitConflictError("another commit was faster"))


def is_retried(error: BaseException) -> bool:
    return str(StorageRetryPolicy().evaluate(error, 1, 5).action).lower().endswith("retry")


def test_two_refreshes_at_once_commit_once(catalog: Catalog, orders: DynamicTable, by_item: DynamicTable) -> None:
    from concurrent.futures import ThreadPoolExecutor

    refreshed()
    orders.upsert([{"id": 2, "item": "ink", "amount": 4}])

    with ThreadPoolExecutor(2) as threads:
        results = [each.result() for each in [threads.submit(refreshed) for _ in range(2)]]

    modes = sorted(result["mode"] for result, _ in results)
    assert modes in (["incremental", "none"], ["incremental", "incremental"])
    assert sorted(result["version"] or 0 for result, _ in results) == [0, 2]
    assert sum(len(events) for _, events in results) == 1
    assert stored_bag(by_item) == expected_bag(catalog, by_item)


def test_a_diamond_over_a_suspended_table_waits_and_says_for_what(
    catalog: Catalog, orders: DynamicTable, by_item: DynamicTable, one_spark: SparkSession
) -> None:
    from storage_lib.spark import create_materialized_table, suspend

    query = "SELECT b.item, b.orders, o.id FROM by_item b JOIN orders o ON b.item = o.item"
    create_materialized_table(catalog, "shop.joined", query, spark=one_spark)
    refreshed()
    assert refreshed("shop.joined")[0]["mode"] == "full"
    suspend(by_item)
    orders.upsert([{"id": 2, "item": "ink", "amount": 4}])

    waiting, _ = refreshed("shop.joined")
    refreshed(even_if_suspended=True)
    done, _ = refreshed("shop.joined")

    assert waiting["mode"] == "none"
    assert "shop.by_item" in waiting["reason"]
    assert done["mode"] == "incremental"
    joined = catalog.load_table("shop.joined")
    assert stored_bag(joined) == expected_bag(catalog, joined)


def test_another_word_than_suspend_or_resume_is_refused(by_item: DynamicTable) -> None:
    task = SetRefreshStatusOperator(task_id="other", table="shop.by_item", change="pause")

    with pytest.raises(InvalidInputError, match="suspend"):
        task.execute(task_context(task))
