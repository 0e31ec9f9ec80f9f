"""Materialized tables in a real Airflow: chains and diamonds, suspended and dropped tables, refreshes that fail."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_rest import AirflowRest
from dynamic_table.declarations.listed_tables import LIST_VARIABLE
from dynamic_table.sinks.sink_job import SinkJob, SinkState
from local_airflow import LocalAirflow
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, parse_freshness
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib import Catalog, DynamicTable

pytestmark = [pytest.mark.airflow, pytest.mark.integration, pytest.mark.timeout(900)]

LIST = "refresh_materialized_tables"
ORDERS = {"id": "BIGINT", "item": "STRING", "amount": "BIGINT"}


def define(
    catalog: Catalog, name: str, query: str, columns: dict[str, str], key: str, freshness: str | None = None
) -> DynamicTable:
    """Create a materialized table without Spark, which the tests' own process does not need otherwise."""
    from storage_lib.materialized.algebra import tables_of

    definition = MaterializedTableDefinition(
        query=query, database="mt", sources=tables_of(query, database="mt"), freshness=parse_freshness(freshness)
    )
    return catalog.create_table(name, columns, primary_key=[key], options=definition.to_options())


@pytest.fixture(scope="module")
def orders(catalog: Catalog) -> DynamicTable:
    """Create a source, a table of it, and a table that reads both, so that the three are a chain and a diamond."""
    source = catalog.create_table("mt.orders", ORDERS, primary_key=["id"])
    source.append([{"id": 1, "item": "pen", "amount": 2}, {"id": 2, "item": "pen", "amount": 3}])
    define(
        catalog,
        "mt.by_item",
        "SELECT item, count(*) AS orders, sum(amount) AS turnover FROM orders GROUP BY item",
        {"item": "STRING", "orders": "BIGINT", "turnover": "BIGINT"},
        "item",
    )
    define(
        catalog,
        "mt.shares",
        "SELECT o.id, o.amount, b.turnover FROM orders o JOIN by_item b ON o.item = b.item",
        {"id": "BIGINT", "amount": "BIGINT", "turnover": "BIGINT"},
        "id",
    )
    return source


def commit_of_airflow(rest: AirflowRest, table: str) -> None:
    """Emit the asset event that a task emits for its commit."""
    uri = f"dynamic-table://{table.replace('.', '/')}"
    [asset] = [each for each in rest.pages("/assets", "assets") if each["uri"].rstrip("/") == uri]
    rest.post("/assets/events", {"asset_id": asset["id"], "extra": {"op": "test"}})


def runs(rest: AirflowRest, table: str) -> list[dict[str, Any]]:
    """Return the runs of a table's DAG, oldest first."""
    found: list[dict[str, Any]] = rest.get(f"/dags/refresh.{table}/dagRuns?order_by=run_after&limit=100")["dag_runs"]
    return found


def wait_for_table(rest: AirflowRest, name: str) -> None:
    rest.run(LIST)
    rest.parse_again(LIST)
    rest.wait_until(lambda: f"refresh.{name}" in rest.dag_ids(), f"the DAG of {name}", timeout=240)


def reached(table: DynamicTable, source: DynamicTable) -> bool:
    """Return whether a table holds the newest snapshot of a source."""
    from storage_lib.materialized.sources.source_positions import recorded_position, source_name

    newest = table.inspect.latest_snapshot_id()
    if newest is None:
        return False
    position = recorded_position(table.inspect.source_positions(newest), source_name(source))
    return position is not None and position.snapshot_id == source.inspect.latest_snapshot_id()


def test_a_chain_and_a_diamond_are_refreshed_in_order_after_a_commit_of_the_source(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    rest.wait_for_dag(LIST)
    by_item, shares = catalog.load_table("mt.by_item"), catalog.load_table("mt.shares")
    wait_for_table(rest, "mt.by_item")
    wait_for_table(rest, "mt.shares")

    for amount in (5, 6):
        orders.upsert([{"id": 2, "item": "ink", "amount": amount}])
        commit_of_airflow(rest, "mt.orders")
        rest.wait_until(lambda: reached(by_item, orders) and reached(shares, by_item), "both tables", timeout=240)
        assert reached(shares, orders)
        for table in (by_item, shares):
            assert stored_bag(table) == expected_bag(catalog, table)

    rest.wait_until(
        lambda: all(each["state"] == "success" for each in runs(rest, "mt.shares")), "its runs", timeout=120
    )
    rest.wait_until(
        lambda: all(each["state"] == "success" for each in runs(rest, "mt.by_item")), "its runs", timeout=60
    )
    results = [rest.result("refresh.mt.by_item", each["dag_run_id"], "refresh") for each in runs(rest, "mt.by_item")]
    events = rest.asset_events("dynamic-table://mt/by_item")
    committed = [each for each in results if each["version"] is not None]
    assert [(each["mode"], each["rows_written"]) for each in committed] == [("full", 2), ("incremental", 1)]
    assert [each["extra"]["version"] for each in events] == [each["version"] for each in committed] == [1, 2]
    assert events[1]["extra"]["rows_read"] == {"mt.orders": 2}
    assert all(each["run_type"] == "asset_triggered" for each in runs(rest, "mt.shares"))


@pytest.mark.deep  # tests/plugins runs the operators, and makes the DAGs of suspended tables
def test_a_suspended_table_is_skipped_with_the_reason_and_refreshed_when_it_is_resumed(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    by_item = catalog.load_table("mt.by_item")
    for dag_id in (LIST, "change_refresh_status"):
        rest.wait_for_dag(dag_id)
    wait_for_table(rest, "mt.by_item")
    before = by_item.inspect.latest_snapshot_id()
    rest.run("change_refresh_status", conf={"table": "mt.by_item", "change": "suspend"})
    orders.append([{"id": 3, "item": "cap", "amount": 1}])

    run = rest.run("refresh.mt.by_item")

    assert rest.task_states("refresh.mt.by_item", run) == {"refresh": "skipped"}
    assert rest.result("refresh.mt.by_item", run, "refresh")["mode"] == "skipped"
    assert "mt.by_item is suspended" in rest.log("refresh.mt.by_item", run, "refresh")
    assert by_item.inspect.latest_snapshot_id() == before
    rest.wait_until(lambda: schedule(rest, "mt.by_item") is None, "its schedule to end", timeout=240)
    resumed = rest.run("change_refresh_status", conf={"table": "mt.by_item", "change": "resume"})
    assert rest.task_states("change_refresh_status", resumed) == {"set_status": "success", "refresh": "success"}
    assert reached(by_item, orders)
    rest.wait_until(lambda: schedule(rest, "mt.by_item"), "its schedule", timeout=240)


def schedule(rest: AirflowRest, table: str) -> object:
    return rest.get(f"/dags/refresh.{table}/details")["timetable_summary"]


@pytest.mark.deep  # tests/plugins runs the operator
def test_a_refresh_that_violates_the_key_fails_once_keeps_the_rows_and_names_the_key(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    source = catalog.create_table("mt.visits", {"id": "BIGINT", "guest": "STRING"}, primary_key=["id"])
    source.append([{"id": 1, "guest": "ann"}])
    columns = {"guest": "STRING", "id": "BIGINT"}
    table = define(catalog, "mt.guests", "SELECT guest, id FROM visits", columns, "guest")
    rest.wait_for_dag(LIST)
    wait_for_table(rest, "mt.guests")
    rest.run("refresh.mt.guests")
    before = stored_bag(table)
    source.append([{"id": 2, "guest": "ann"}])

    run = rest.trigger("refresh.mt.guests")

    assert rest.wait("refresh.mt.guests", run) == "failed"
    assert [each["state"] for each in rest.tries("refresh.mt.guests", run, "refresh")] == ["failed"]
    log = rest.log("refresh.mt.guests", run, "refresh")
    assert "InvalidInputError" in log
    assert "ann" in log
    assert (stored_bag(table), table.inspect.latest_snapshot_id()) == (before, 1)


@pytest.mark.deep
def test_a_table_that_is_dropped_before_its_run_fails_it_once_and_takes_its_dag_with_it(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    define(catalog, "mt.brief", "SELECT id FROM orders", {"id": "BIGINT"}, "id")
    rest.wait_for_dag(LIST)
    wait_for_table(rest, "mt.brief")
    rest.patch(f"/dags/{LIST}", {"is_paused": True})
    catalog.drop_table("mt.brief")

    run = rest.trigger("refresh.mt.brief")

    assert rest.wait("refresh.mt.brief", run) == "failed"
    assert [each["state"] for each in rest.tries("refresh.mt.brief", run, "refresh")] == ["failed"]
    assert "mt.brief" in rest.log("refresh.mt.brief", run, "refresh")
    rest.patch(f"/dags/{LIST}", {"is_paused": False})
    rest.wait_until(lambda: "refresh.mt.brief" not in rest.dag_ids(), "its DAG to disappear", timeout=240)
    assert "mt.brief" not in rest.get(f"/variables/{LIST_VARIABLE}")["value"]


@pytest.mark.deep
def test_a_refresh_that_takes_longer_than_the_freshness_delays_the_next_one_and_none_runs_beside_it(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    """No task tells Airflow of these commits: the time of the schedule finds them."""
    source = catalog.create_table("mt.ticks", {"id": "BIGINT"}, primary_key=["id"])
    query, columns = "SELECT id % 10 AS digit, count(*) AS n FROM ticks GROUP BY id % 10", {"digit": "BIGINT"}
    table = define(catalog, "mt.digits", query, {**columns, "n": "BIGINT"}, "digit", freshness="PT1S")
    rest.wait_for_dag(LIST)
    wait_for_table(rest, "mt.digits")

    at_once = []
    deadline, number = time.monotonic() + 60, 0
    while time.monotonic() < deadline:
        number += 1
        source.append([{"id": number}])
        at_once.append(sum(each["state"] == "running" for each in runs(rest, "mt.digits")))
        time.sleep(1)
    rest.wait_until(lambda: reached(table, source), "the last commit to be refreshed", timeout=240)
    rest.patch("/dags/refresh.mt.digits", {"is_paused": True})

    assert max(at_once) == 1
    assert stored_bag(table) == expected_bag(catalog, table)
    assert len(runs(rest, "mt.digits")) <= 60, "runs were queued for every tick"
    assert {each["run_type"] for each in runs(rest, "mt.digits")} == {"scheduled"}


@pytest.mark.deep  # tests/plugins checks that a DAG has one run at a time
def test_a_run_by_hand_waits_for_the_run_that_is_refreshing(
    rest: AirflowRest, catalog: Catalog, orders: DynamicTable
) -> None:
    rest.wait_for_dag(LIST)
    for name in ("mt.by_item", "mt.shares"):
        wait_for_table(rest, name)
    shares = catalog.load_table("mt.shares")
    # The first refresh of all is a full one.
    rest.run("refresh.mt.by_item")
    orders.upsert([{"id": 1, "item": "pen", "amount": 8}])

    first, second = (rest.trigger("refresh.mt.by_item") for _ in range(2))
    states = [rest.wait("refresh.mt.by_item", run) for run in (first, second)]

    assert states == ["success", "success"]
    modes = [rest.result("refresh.mt.by_item", run, "refresh")["mode"] for run in (first, second)]
    assert sorted(modes) == ["incremental", "none"]
    rest.wait_until(lambda: reached(shares, orders), "the downstream table", timeout=240)


@pytest.mark.deep  # tests/plugins runs the operator; other DAGs mark a task that a sink serves
def test_a_refresher_keeps_a_table_fresh_until_its_task_is_marked_as_success(
    rest: AirflowRest, airflow: LocalAirflow, catalog: Catalog, orders: DynamicTable
) -> None:
    source = catalog.create_table("mt.hits", {"id": "BIGINT"}, primary_key=["id"])
    query, columns = "SELECT id % 2 AS half, count(*) AS n FROM hits GROUP BY id % 2", {"half": "BIGINT", "n": "BIGINT"}
    table = define(catalog, "mt.halves", query, columns, "half")
    rest.wait_for_dag("keep_tables_fresh")

    run = rest.trigger("keep_tables_fresh", conf={"tables": ["mt.halves"], "master": "local[1]"})
    for number in range(3):
        source.append([{"id": number}])
        rest.wait_until(lambda: reached(table, source), "the commit to be refreshed", timeout=180)
    rest.wait_until_watched("keep_tables_fresh", run, "refresher")
    [job] = (SinkJob(each) for each in (airflow.home / "dynamic_table_jobs" / "refresher" / "mt.halves").glob("job-*"))
    assert job.report().state is SinkState.RUNNING
    rest.mark("keep_tables_fresh", run, "refresher", "success")

    wait_until(lambda: job.report().state is SinkState.CANCELLED)
    assert stored_bag(table) == expected_bag(catalog, table)
    assert job.report().heartbeat["tables"]["mt.halves"]["mode"] == "incremental"
