"""DAGs of materialized tables: their list, their schedules, and what parsing costs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset, AssetAny

from dynamic_table.declarations import listed_tables
from dynamic_table.declarations.listed_tables import LIST_VARIABLE, ListedTable, read_list
from dynamic_table.operators.list_materialized_tables import ListMaterializedTablesOperator
from dynamic_table.refresh_dags import refresh_dags, schedule_of
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.sdk_schedules import AssetOrTimeSchedule, DeltaTriggerTimetable
from storage_lib import Catalog, DynamicTable, open_catalog
from storage_lib.errors import NotFoundError
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition, RefreshStatus, parse_freshness
from tests.support.task_context import task_context

CHECKOUT = Path(__file__).resolve().parents[2]
DAILY = {"sources": ["shop.orders", "shop.items"], "freshness_seconds": 300, "is_suspended": False}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Keep Airflow's variables in a dictionary."""
    variables: dict[str, str] = {}

    class Kept:
        @staticmethod
        def get(key: str, default: str | None = None) -> str | None:
            return variables.get(key, default)

        @staticmethod
        def set(key: str, value: str, description: str) -> None:
            assert description
            variables[key] = value

    monkeypatch.setattr(listed_tables, "Variable", Kept)
    return variables


@pytest.fixture
def catalog(warehouse: Path) -> Catalog:
    """Return a catalog with an ordinary table and two materialized ones."""
    catalog = open_catalog(str(warehouse), {"log.system": "none"})
    catalog.create_table("shop.orders", {"id": "BIGINT"}, primary_key=["id"])
    define(catalog, "shop.daily", freshness="PT5M")
    define(catalog, "shop.idle", status=RefreshStatus.SUSPENDED)
    return catalog


def define(catalog: Catalog, name: str, freshness: str | None = None, **more: Any) -> DynamicTable:
    definition = MaterializedTableDefinition(
        query="SELECT id FROM orders",
        database="shop",
        sources=("shop.orders",),
        freshness=parse_freshness(freshness),
        **more,
    )
    return catalog.create_table(name, {"id": "BIGINT"}, primary_key=["id"], options=definition.to_options())


def listed() -> list[str]:
    task = ListMaterializedTablesOperator(task_id="list")
    return task.execute(task_context(task))


def test_the_list_tells_which_tables_their_readers_refresh(catalog: Catalog, stored: dict[str, str]) -> None:
    define(catalog, "shop.part", freshness="DOWNSTREAM")
    listed()

    assert read_list()["shop.part"] == ListedTable(sources=("shop.orders",), is_downstream=True)


def test_the_materialized_tables_of_the_catalog_are_listed_with_their_sources(
    catalog: Catalog, stored: dict[str, str]
) -> None:
    assert listed() == ["shop.daily", "shop.idle"]

    assert read_list() == {
        "shop.daily": ListedTable(sources=("shop.orders",), freshness_seconds=300),
        "shop.idle": ListedTable(sources=("shop.orders",), is_suspended=True),
    }
    before = stored[LIST_VARIABLE]
    catalog.drop_table("shop.idle")
    listed()
    assert set(read_list()) == {"shop.daily"}
    assert stored[LIST_VARIABLE] != before


def test_a_catalog_that_cannot_be_read_leaves_the_list_as_it_was(catalog: Catalog, stored: dict[str, str]) -> None:
    listed()
    before = dict(stored)
    Path(catalog.warehouse).rename(f"{catalog.warehouse}.unmounted")

    with pytest.raises(NotFoundError, match="does not exist"):
        listed()

    assert stored == before


def test_a_table_that_cannot_be_read_keeps_its_entry_and_does_not_hide_the_others(
    catalog: Catalog, stored: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    listed()
    before = read_list()
    for path in Path(catalog.load_table("shop.daily").location, "schema").glob("schema-*"):
        path.write_text("{")
    define(catalog, "shop.later")

    assert listed() == ["shop.daily", "shop.idle", "shop.later"]
    assert read_list()["shop.daily"] == before["shop.daily"]
    assert "Table shop.daily can't be read" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["[1]", "{", '{"shop.daily": {}}', '{"shop.daily": 1}', "null"])
def test_a_variable_that_holds_something_else_makes_no_dag_and_breaks_no_file(
    text: str, stored: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    stored[LIST_VARIABLE] = text

    assert refresh_dags("doc") == {}
    assert "is not a list of materialized tables" in caplog.text


def test_each_table_has_a_dag_that_refreshes_it_one_run_at_a_time(stored: dict[str, str]) -> None:
    stored[LIST_VARIABLE] = json.dumps({"shop.daily": DAILY})

    dags = refresh_dags("doc", dynamic_table_conn_id="other")

    [dag] = dags.values()
    assert list(dags) == [dag.dag_id] == ["refresh.shop.daily"]
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation) == (1, False, False)
    task: Any = dag.get_task("refresh")
    assert (task.table, task.dynamic_table_conn_id) == ("shop.daily", "other")
    dag.params.validate()


def delta_of(timetable: Any) -> timedelta:
    """Return the time between runs; before Airflow 3.2, equal timetables differ."""
    assert isinstance(timetable, DeltaTriggerTimetable)
    found: Any = timetable
    return found.delta if AirflowFeature.NAMES_OF_THE_SDK.is_here else found._delta


def test_a_table_waits_for_any_of_its_sources_and_at_most_half_of_its_freshness() -> None:
    schedule = schedule_of(ListedTable(sources=("a.x", "a.y"), freshness_seconds=300), {})

    assert isinstance(schedule, AssetOrTimeSchedule)
    assert delta_of(schedule.timetable) == timedelta(seconds=150)
    assert uris(schedule.asset_condition) == ["dynamic-table://a/x", "dynamic-table://a/y"]
    brief = schedule_of(ListedTable(sources=("a.x",), freshness_seconds=1), {})
    assert isinstance(brief, AssetOrTimeSchedule)
    assert delta_of(brief.timetable) == timedelta(seconds=10)


def test_a_table_without_freshness_waits_for_its_sources_only_and_a_suspended_one_for_nothing() -> None:
    schedule = schedule_of(ListedTable(sources=("a.x",)), {})

    assert uris(schedule) == ["dynamic-table://a/x"]
    assert schedule_of(ListedTable(sources=("a.x",), freshness_seconds=60, is_suspended=True), {}) is None
    assert schedule_of(ListedTable(sources=()), {}) is None
    assert schedule_of(ListedTable(sources=(), reads_catalogs=True), {}) is None


def test_a_table_that_reads_only_other_catalogs_is_refreshed_after_half_of_its_freshness() -> None:
    schedule = schedule_of(ListedTable(sources=(), freshness_seconds=300, reads_catalogs=True), {})

    assert delta_of(schedule) == timedelta(seconds=150)


def test_a_table_waits_for_what_the_tables_read_that_it_refreshes_first() -> None:
    listed = {
        "a.one": ListedTable(sources=("a.x", "a.two"), is_downstream=True),
        "a.two": ListedTable(sources=("a.y", "a.one"), is_downstream=True),
        "a.idle": ListedTable(sources=("a.z",), is_downstream=True, is_suspended=True),
    }

    schedule = schedule_of(ListedTable(sources=("a.one", "a.idle")), listed)

    assert uris(schedule) == ["dynamic-table://a/idle", "dynamic-table://a/x", "dynamic-table://a/y"]
    assert schedule_of(listed["a.one"], listed) is None


def uris(condition: object) -> list[str]:
    assert isinstance(condition, AssetAny)
    return sorted(each.uri for each in condition.objects if isinstance(each, Asset))


def test_a_worker_makes_the_dag_of_its_task_alone_without_the_list(
    stored: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored[LIST_VARIABLE] = json.dumps({"shop.daily": DAILY, "shop.other": DAILY})

    def asked(*_: object, **__: object) -> None:
        pytest.fail("a worker read the list")

    monkeypatch.setattr("dynamic_table.refresh_dags.read_list", asked)
    found = {}
    for dag_id in ("refresh.shop.dropped", "refresh_materialized_tables"):
        # Airflow's own context manager leaves the variable behind.
        monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
        found[dag_id] = list(refresh_dags("doc"))

    assert found == {"refresh.shop.dropped": ["refresh.shop.dropped"], "refresh_materialized_tables": []}


def test_a_thousand_tables_are_parsed_in_seconds_without_the_catalog() -> None:
    """The connection names a host that does not answer; parsing does not open it."""
    tables = {f"shop.t{number}": DAILY for number in range(1_000)}
    program = (
        "import runpy, sys, time\n"
        "import airflow.sdk, dynamic_table.refresh_dags\n"
        "started = time.process_time()\n"
        f"found = runpy.run_path({str(CHECKOUT / 'dags' / 'refresh_materialized_tables.py')!r})\n"
        "heavy = {name.split('.')[0] for name in sys.modules} & {'storage_lib', 'pyarrow', 'pyspark'}\n"
        "print(len(found['DAGS_OF_TABLES']), sorted(heavy), time.process_time() - started)\n"
    )
    environment = {
        f"AIRFLOW_VAR_{LIST_VARIABLE.upper()}": json.dumps(tables),
        "AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT": '{"conn_type": "dynamic_table", "extra": {"warehouse": "s3://192.0.2.1"}}',
    }
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )

    count, heavy, seconds = answer.stdout.splitlines()[-1].split(" ")
    assert (count, heavy) == ("1000", "[]")
    assert float(seconds) < 10
