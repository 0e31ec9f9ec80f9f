"""The refresher from its task's view: a real process that keeps tables fresh, found again, and stopped by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamic_table.operators.run_refresher import REFRESHER_FACTS_KEY, RefresherOperator
from dynamic_table.sinks.sink_job import SinkJob, SinkState
from dynamic_table.versions.sdk_exceptions import AirflowFailException
from storage_lib import Catalog, DynamicTable, open_catalog
from storage_lib.errors import InvalidInputError, NotFoundError
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from tests.support.airflow_names import TaskDeferred
from tests.support.materialized_answers import expected_bag, stored_bag
from tests.support.task_context import DictStore, task_context
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    return open_catalog(str(warehouse), {"log.system": "none"})


@pytest.fixture
def orders(catalog: Catalog) -> DynamicTable:
    """Create a source with a table of it, ``shop.counts``, and one whose key its rows violate, ``shop.broken``."""
    table = catalog.create_table("shop.orders", {"id": "BIGINT", "item": "STRING"}, primary_key=["id"])
    table.append([{"id": 1, "item": "pen"}, {"id": 2, "item": "pen"}])
    define(catalog, "shop.counts", "SELECT item, count(*) AS n FROM orders GROUP BY item", {"n": "BIGINT"})
    define(catalog, "shop.broken", "SELECT item, id FROM orders", {"id": "BIGINT"})
    return table


def define(catalog: Catalog, name: str, query: str, columns: dict[str, str]) -> None:
    definition = MaterializedTableDefinition(query=query, database="shop", sources=("shop.orders",))
    options = definition.to_options()
    catalog.create_table(name, {"item": "STRING", **columns}, primary_key=["item"], options=options)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Path]:
    """Return the directory of jobs, which are killed at the end."""
    yield tmp_path / "jobs"
    for directory in (tmp_path / "jobs").rglob("job-*"):
        SinkJob(directory).kill()


def operator(jobs: Path, **arguments: Any) -> RefresherOperator:
    given = {"master": "local[2]", "refresh_poll_seconds": "0.2", "deferrable": True, **arguments}
    return RefresherOperator(task_id="refresher", jobs_directory=str(jobs), **given)


def start(task: RefresherOperator, store: DictStore) -> SinkJob:
    with pytest.raises(TaskDeferred):
        task.execute(task_context(task, store=store))
    return SinkJob(Path(store["sink_job"]))


def test_a_refresher_keeps_tables_fresh_reports_each_and_ends_after_the_refresh_that_runs(
    catalog: Catalog, orders: DynamicTable, jobs: Path
) -> None:
    task, store, counts = operator(jobs), DictStore(), catalog.load_table("shop.counts")
    job = start(task, store)
    wait_until(lambda: len(job.report().heartbeat.get("tables", {})) == 2)
    first = job.report().heartbeat["tables"]
    orders.upsert([{"id": 2, "item": "ink"}])
    wait_until(lambda: counts.inspect.latest_snapshot_id() == 2)

    assert start(operator(jobs), store) == job, "the next try finds the process"
    assert job.report().state is SinkState.RUNNING
    assert (first["shop.counts"]["mode"], first["shop.counts"]["rows_read"]) == ("full", {"shop.orders": 2})
    assert first["shop.broken"]["error"].startswith("InvalidInputError")
    assert stored_bag(counts) == expected_bag(catalog, counts)
    context = task_context(task, store=store)
    task.tell(context)
    facts = context["ti"].pushed[REFRESHER_FACTS_KEY]  # type: ignore[attr-defined]
    assert (facts["state"], sorted(facts["tables"])) == ("running", ["shop.broken", "shop.counts"])
    job.request_stop("enough")
    wait_until(lambda: job.report().state is SinkState.STOPPED)
    wait_until(lambda: job.report().heartbeat["refresh_count"] == 3)
    result = task.execute_complete(
        task_context(task, store=store), {"directory": str(job.directory), "state": "stopped"}
    )
    assert (result["op"], result["refresh_count"]) == ("refresher", 3)
    assert json.loads(json.dumps(result)) == result
    assert "sink_job" not in store


def test_a_second_task_for_the_same_tables_is_refused_and_one_for_others_is_not(
    orders: DynamicTable, jobs: Path
) -> None:
    start(operator(jobs, tables=["shop.counts"]), DictStore())
    other = operator(jobs, tables=["shop.counts"])
    apart = start(operator(jobs, tables=["shop.broken"]), DictStore())

    with pytest.raises(AirflowFailException, match=r"shop\.counts has a refresher already"):
        other.execute(task_context(other, run_id="another"))

    assert apart.directory.parent.name == "shop.broken"


def test_tables_that_are_missing_or_ordinary_are_refused_before_a_process_starts(
    orders: DynamicTable, jobs: Path
) -> None:
    for name, error in (("shop.orders", InvalidInputError), ("shop.missing", NotFoundError)):
        task = operator(jobs, tables=[name])
        with pytest.raises(error, match=name):
            task.execute(task_context(task))

    assert list(jobs.rglob("job-*")) == []


def test_a_table_that_is_dropped_ends_the_process_and_fails_the_task_with_the_reason(
    catalog: Catalog, orders: DynamicTable, jobs: Path
) -> None:
    task, store = operator(jobs, tables=["shop.counts"]), DictStore()
    job = start(task, store)
    wait_until(lambda: job.report().heartbeat.get("refresh_count") == 1)
    catalog.drop_table("shop.counts")
    wait_until(lambda: job.report().state is SinkState.FAILED)

    with pytest.raises(AirflowFailException, match=r"Refresher failed: NotFoundError.*shop\.counts"):
        task.execute_complete(task_context(task, store=store), {"directory": str(job.directory), "state": "failed"})


def test_a_refresher_that_is_killed_is_started_again_and_finds_the_new_commits(
    catalog: Catalog, orders: DynamicTable, jobs: Path
) -> None:
    store, counts = DictStore(), catalog.load_table("shop.counts")
    job = start(operator(jobs, tables=["shop.counts"]), store)
    wait_until(lambda: job.report().heartbeat.get("refresh_count") == 1)
    job.kill()
    wait_until(lambda: job.report().state is SinkState.LOST)
    orders.upsert([{"id": 2, "item": "ink"}])

    again = start(operator(jobs, tables=["shop.counts"]), store)

    assert again != job
    wait_until(lambda: counts.inspect.latest_snapshot_id() == 2)
    assert stored_bag(counts) == expected_bag(catalog, counts)
