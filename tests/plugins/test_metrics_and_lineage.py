"""Metrics, log lines and lineage that a task reports to Airflow."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from dynamic_table.events.metrics import report_health, report_sink
from dynamic_table.operators.create_tag import CreateTagOperator
from dynamic_table.operators.drop_table import DropTableOperator
from dynamic_table.operators.list_tables_in_need import ListTablesInNeedOperator
from dynamic_table.operators.refresh_materialized_table import RefreshMaterializedTableOperator
from dynamic_table.operators.reprocess_partitions import ReprocessPartitionsOperator
from dynamic_table.operators.tier_log import TierLogOperator
from dynamic_table.operators.validate_table import ValidateTableOperator
from storage_lib import open_catalog
from storage_lib.schema.options.materialized_table import MaterializedTableDefinition
from storage_lib.table.inspect.table_health import TableHealth
from tests.support.task_context import task_context

ROWS = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, dict[str, str]]]:
    """Record every metric: its name, value and tags."""
    seen: list[tuple[str, Any, dict[str, str]]] = []

    def note(name: str, value: float = 1, *, tags: dict[str, str]) -> None:
        seen.append((name, value, tags))

    monkeypatch.setattr("dynamic_table.events.metrics.stats", SimpleNamespace(incr=note, gauge=note))
    return seen


@pytest.fixture
def orders(warehouse: Path) -> Any:
    """Create a table of one day with two rows."""
    table = open_catalog(str(warehouse)).create_table(
        "shop.orders", ROWS, primary_key=["day", "id"], partition_by=["day"], options={"log.system": "none"}
    )
    table.append(pa.table({"day": ["a", "a"], "id": [1, 2]}, schema=ROWS))
    return table


def reprocess(table: Any) -> ReprocessPartitionsOperator:
    rows = "tests.support.day_rows:rows_of_day"
    return ReprocessPartitionsOperator(task_id="do", table=table.name, partitions=[{"day": "a"}], rows=rows)


def test_a_commit_and_its_rows_are_counted_and_logged_as_fields(
    orders: Any, told: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    task = reprocess(orders)

    task.execute(task_context(task))

    tags = {"table": "shop.orders", "op": "reprocess"}
    assert told == [("dynamic_table.commits", 1, tags), ("dynamic_table.rows", 2, tags)]
    [line] = [line for line in capsys.readouterr().out.splitlines() if "table_commit" in line]
    assert "snapshot_id=2" in line
    assert "table=shop.orders" in line


def test_who_looks_for_work_tells_how_the_tables_are(orders: Any, told: list[Any]) -> None:
    task = ListTablesInNeedOperator(task_id="list")

    task.execute(task_context(task))

    values = {name: value for name, value, tags in told if tags == {"table": orders.name}}
    assert sorted(values) == [
        "dynamic_table.change_age",
        "dynamic_table.rejected",
        "dynamic_table.runs_max",
        "dynamic_table.size",
        "dynamic_table.snapshots",
    ]
    assert 0 <= values["dynamic_table.change_age"] < 600
    assert (values["dynamic_table.runs_max"], values["dynamic_table.snapshots"]) == (1, 1)


def test_the_lag_of_a_view_is_gauged_for_a_table_with_one(told: list[Any]) -> None:
    report_health("db.t", TableHealth(snapshot_id=7, view_snapshot_id=5), 0)
    assert ("dynamic_table.view_lag", 2, {"table": "db.t"}) in told

    assert ("dynamic_table.view_problems", 0, {"table": "db.t"}) in told

    told.clear()
    report_health("db.t", TableHealth(snapshot_id=7), 0)
    assert not {"dynamic_table.view_lag", "dynamic_table.view_problems"} & {name for name, _, _ in told}
    report_health("db.t", TableHealth(snapshot_id=7, view_problem="its state is unknown"), 0)
    assert ("dynamic_table.view_problems", 1, {"table": "db.t"}) in told


def test_a_sinks_report_is_gauged_as_far_as_it_is_known(told: list[Any]) -> None:
    report_sink("db.t", {"state": "running", "lag": 7, "heartbeat_age_seconds": 0.5, "unknown": "no broker"})

    assert [(name, value) for name, value, _ in told] == [
        ("dynamic_table.sink.lag", 7),
        ("dynamic_table.sink.heartbeat_age_seconds", 0.5),
    ]


def test_lineage_names_the_table_its_columns_and_the_snapshot(orders: Any, warehouse: Path) -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the extra lineage is not installed")
    writer, reader = reprocess(orders), ValidateTableOperator(task_id="validate", table=orders.name)
    ended: Any = SimpleNamespace(map_index=-1, xcom_pull=lambda **_: {"version": 2})

    begun, done = writer.get_openlineage_facets_on_start(), writer.get_openlineage_facets_on_complete(ended)

    [output] = done.outputs
    assert (output.namespace, output.name) == (f"file://{warehouse}", "shop.orders")
    assert output.facets["version"].datasetVersion == "2"
    assert [field.name for field in output.facets["schema"].fields] == ["day", "id"]
    assert "version" not in begun.outputs[0].facets
    read = reader.get_openlineage_facets_on_complete(ended)
    assert ([each.name for each in read.inputs], read.outputs) == (["shop.orders"], [])


def test_lineage_is_told_that_a_table_was_dropped_and_nothing_of_what_is_no_name(orders: Any) -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the extra lineage is not installed")
    drop = DropTableOperator(task_id="drop", table=orders.name)
    done = SimpleNamespace(map_index=-1, xcom_pull=lambda **_: {"existed": True})
    failed = SimpleNamespace(map_index=-1, xcom_pull=lambda **_: None)

    dropped, kept = (drop.get_openlineage_facets_on_complete(ended) for ended in (done, failed))
    nameless = [
        kind(task_id="nameless", table=None, **more).get_openlineage_facets_on_start()
        for kind, more in ((DropTableOperator, {}), (CreateTagOperator, {"tag": "kept"}), (TierLogOperator, {}))
    ]

    [output] = dropped.outputs
    assert (output.name, output.facets["lifecycleStateChange"].lifecycleStateChange.value) == (orders.name, "DROP")
    assert dropped.inputs == []
    assert [set(told.outputs[0].facets) for told in (kept, drop.get_openlineage_facets_on_start())] == [{"schema"}] * 2
    assert [(told.inputs, told.outputs) for told in nameless] == [([], [])] * 3


def test_the_lineage_of_a_refresh_leads_from_the_sources_columns_to_the_tables(orders: Any, warehouse: Path) -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the extra lineage is not installed")
    query = "SELECT day, count(*) AS n, max(id) + 1 AS following FROM orders GROUP BY day"
    definition = MaterializedTableDefinition(query=query, database="shop", sources=("shop.orders",))
    columns = {"day": "STRING", "n": "BIGINT", "following": "BIGINT"}
    open_catalog(str(warehouse)).create_table(
        "shop.days", columns, primary_key=["day"], options={"log.system": "none", **definition.to_options()}
    )
    task = RefreshMaterializedTableOperator(task_id="refresh", table="shop.days")
    ended: Any = SimpleNamespace(map_index=-1, xcom_pull=lambda **_: {"version": 4})

    done = task.get_openlineage_facets_on_complete(ended)

    [source], [output] = done.inputs, done.outputs
    assert (source.name, output.name, output.facets["version"].datasetVersion) == ("shop.orders", "shop.days", "4")
    fields = output.facets["columnLineage"].fields
    found = {name: [(each.name, each.field) for each in lineage.inputFields] for name, lineage in fields.items()}
    assert found == {"day": [("shop.orders", "day")], "n": [], "following": [("shop.orders", "id")]}
    assert {each.namespace for lineage in fields.values() for each in lineage.inputFields} == {f"file://{warehouse}"}


def test_a_refresh_whose_source_was_dropped_still_names_its_tables(orders: Any, warehouse: Path) -> None:
    pytest.importorskip("airflow.providers.openlineage", reason="the extra lineage is not installed")
    catalog = open_catalog(str(warehouse))
    definition = MaterializedTableDefinition(query="SELECT id FROM orders", database="shop", sources=("shop.orders",))
    catalog.create_table(
        "shop.ids", {"id": "BIGINT"}, primary_key=["id"], options={"log.system": "none", **definition.to_options()}
    )
    catalog.drop_table("shop.orders")

    begun = RefreshMaterializedTableOperator(task_id="refresh", table="shop.ids").get_openlineage_facets_on_start()

    assert ([each.name for each in begun.inputs], [each.name for each in begun.outputs]) == (
        ["shop.orders"],
        ["shop.ids"],
    )
    assert "columnLineage" not in begun.outputs[0].facets
