"""A drill: SIGKILL of refreshing tasks of a chain of five tables and a diamond, in a real Airflow. ``make drill``.

After each kill every table holds the answer of its query at the snapshots that it records. In the end all tables are
current, and no run has failed: retries have done the work of the killed tasks.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from tests.support.materialized_answers import expected_bag, stored_bag

if TYPE_CHECKING:
    from airflow_rest import AirflowRest
    from storage_lib import Catalog, DynamicTable

pytestmark = [pytest.mark.airflow, pytest.mark.drill, pytest.mark.integration, pytest.mark.timeout(3600)]

DATABASE = "killed"
LIST = "refresh_materialized_tables"
TABLES = {
    # A chain of five ...
    "priced": ("SELECT id, cat, n * 2 AS price FROM orders WHERE n > 1", "id INT, cat INT, price INT"),
    "named": (
        "SELECT p.id, c.name, p.price FROM priced p JOIN category c ON p.cat = c.cat",
        "id INT, name STRING, price INT",
    ),
    "per_name": (
        "SELECT name, count(*) AS orders, sum(price) AS total FROM named GROUP BY name",
        "name STRING, orders BIGINT, total BIGINT",
    ),
    "large": ("SELECT name, total FROM per_name WHERE total > 20", "name STRING, total BIGINT"),
    "rests": (
        "SELECT total % 7 AS rest, count(*) AS names, max(total) AS most FROM large GROUP BY total % 7",
        "rest BIGINT, names BIGINT, most BIGINT",
    ),
    # ... and a diamond: both sides derive from orders.
    "per_cat": ("SELECT cat, count(*) AS orders FROM orders GROUP BY cat", "cat INT, orders BIGINT"),
    "shares": (
        """SELECT o.cat, n.name, n.orders, o.orders AS of_cat FROM per_name n JOIN category c ON c.name = n.name
        JOIN per_cat o ON o.cat = c.cat""",
        "cat INT, name STRING, orders BIGINT, of_cat BIGINT",
    ),
}
"""Query and columns of each table, whose key is its first column."""

KILLS = 12
_SECONDS_MAX = 6
"""A task takes about as long, most of it to import what it needs."""
_TRIES_KILLED = 2


def test_a_chain_and_a_diamond_survive_kills_of_their_tasks(rest: AirflowRest, catalog: Catalog) -> None:
    chance = random.Random(3)  # noqa: S311  repeatable
    orders = catalog.create_table(
        f"{DATABASE}.orders", {"id": "INT NOT NULL", "cat": "INT NOT NULL", "n": "INT"}, primary_key=["id"]
    )
    category = catalog.create_table(
        f"{DATABASE}.category", {"cat": "INT NOT NULL", "name": "STRING"}, primary_key=["cat"]
    )
    category.append([{"cat": cat, "name": f"name {cat % 3}"} for cat in range(6)])
    change(orders, category, chance)
    tables = {name: define(catalog, name, query, columns) for name, (query, columns) in TABLES.items()}
    rest.wait_for_dag(LIST)
    rest.run(LIST)
    rest.wait_until(
        lambda: {f"refresh.{DATABASE}.{name}" for name in TABLES} <= set(rest.dag_ids()), "DAGs", timeout=240
    )

    killed = 0
    while killed < KILLS:
        change(orders, category, chance)
        announce(rest, "orders", "category")
        rest.wait_until(lambda: running_pids(rest), "a task that refreshes", timeout=240)
        # Somewhere within a refresh.
        threading.Event().wait(chance.uniform(0, _SECONDS_MAX))
        killed += kill_one(rest, chance)
        check(catalog, tables)

    change(orders, category, chance)
    announce(rest, "orders", "category")
    rest.wait_until(lambda: not any(lags(table) for table in tables.values()), "current tables", timeout=1200)
    rest.wait_until(lambda: not unfinished_runs(rest), "the end of all runs", timeout=600)
    check(catalog, tables)
    assert states(rest) == {"success"}
    tries = [each["try_number"] for each in refreshing_tasks(rest, "success")]
    assert max(tries) > 1, "no retry has done the work of a killed task"


def define(catalog: Catalog, name: str, query: str, columns: str) -> DynamicTable:
    """Create a materialized table without Spark, which this process does not need otherwise."""
    from storage_lib.materialized.algebra import tables_of

    sources = tables_of(query, database=DATABASE)
    definition = MaterializedTableDefinition(query=query, database=DATABASE, sources=sources)
    types = dict(each.split() for each in columns.split(", "))
    return catalog.create_table(
        f"{DATABASE}.{name}", types, primary_key=[next(iter(types))], options=definition.to_options()
    )


def change(orders: DynamicTable, category: DynamicTable, chance: random.Random) -> None:
    rows = {chance.randrange(40): {"cat": chance.randrange(6), "n": chance.randrange(9)} for _ in range(4)}
    orders.upsert([{"id": number, **row} for number, row in rows.items()])
    if chance.random() < 0.3:
        orders.delete(f"id = {chance.randrange(40)}")
    if chance.random() < 0.3:
        category.upsert([{"cat": chance.randrange(6), "name": f"name {chance.randrange(4)}"}])


def announce(rest: AirflowRest, *names: str) -> None:
    """Emit the asset events that tasks emit for their commits."""
    uris = [f"dynamic-table://{DATABASE}/{name}" for name in names]
    for asset in rest.pages("/assets", "assets"):
        if asset["uri"].rstrip("/") in uris:
            rest.post("/assets/events", {"asset_id": asset["id"], "extra": {"op": "test"}})


def refreshing_tasks(rest: AirflowRest, state: str) -> list[dict[str, Any]]:
    found = rest.pages(f"/dags/~/dagRuns/~/taskInstances?state={state}", "task_instances")
    return [each for each in found if each["dag_id"].startswith(f"refresh.{DATABASE}.")]


def running_pids(rest: AirflowRest) -> list[int]:
    """Return the processes that refresh in one of the first tries: Airflow gives a task a few of them."""
    running = refreshing_tasks(rest, "running")
    return sorted(each["pid"] for each in running if each["pid"] and each["try_number"] <= _TRIES_KILLED)


def kill_one(rest: AirflowRest, chance: random.Random) -> int:
    """Kill the process of one task that refreshes; return how many processes were killed: none may run any more."""
    pids = running_pids(rest)
    if not pids:
        return 0
    try:
        os.kill(chance.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def check(catalog: Catalog, tables: dict[str, DynamicTable]) -> None:
    """Compare each table with its query's answer by DuckDB; other tasks may commit meanwhile."""
    for name, table in tables.items():
        newest = table.refresh().inspect.latest_snapshot_id()
        if newest is not None:
            assert stored_bag(table, newest) == expected_bag(catalog, table, newest), (name, newest)


def lags(table: DynamicTable) -> bool:
    from storage_lib.materialized.service.staleness import staleness

    table = table.refresh()
    assert table.definition is not None
    stale = staleness(table, table.definition)
    return stale.is_new or stale.since_millis is not None


def all_runs(rest: AirflowRest) -> list[dict[str, Any]]:
    return [run for name in TABLES for run in rest.pages(f"/dags/refresh.{DATABASE}.{name}/dagRuns", "dag_runs")]


def unfinished_runs(rest: AirflowRest) -> bool:
    return any(each["state"] in ("queued", "running") for each in all_runs(rest))


def states(rest: AirflowRest) -> set[str]:
    return {each["state"] for each in all_runs(rest)}
