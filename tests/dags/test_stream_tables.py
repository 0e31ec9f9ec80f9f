"""The supervisor of sinks in a real Airflow: one sink per declared stream, across crashes and changes of the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from airflow_rest import AirflowRest
from dynamic_table.sinks.sink_job import SinkJob, SinkState, newest_job
from dynamic_table.versions.airflow_feature import AirflowFeature
from local_airflow import LocalAirflow
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib import Catalog

DAG_ID = "light_stream_tables"
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])

pytestmark = [pytest.mark.airflow, pytest.mark.integration, pytest.mark.timeout(600)]


def declare(airflow: LocalAirflow, **seconds: int) -> None:
    """Write the declaration of streams: a table and the seconds between its batches."""
    tables = {
        f"kept.{name}": {
            "columns": {"id": "BIGINT"},
            "stream": {"source": {"kind": "debezium_json", "name": name}, "trigger_seconds": each},
        }
        for name, each in seconds.items()
    }
    aside = airflow.home / "light_tables.new"
    aside.write_text(json.dumps({"tables": tables}))
    aside.replace(airflow.home / "light_tables.yaml")


def sink(airflow: LocalAirflow, name: str) -> SinkJob:
    """Wait until a table's sink is running, and return it."""
    folder = airflow.home / "dynamic_table_jobs" / f"kept.{name}"
    wait_until(lambda: (job := newest_job(folder)) and job.report().state is SinkState.RUNNING)
    job = newest_job(folder)
    assert job is not None
    return job


def active_runs(rest: AirflowRest) -> list[str]:
    runs = rest.get(f"/dags/{DAG_ID}/dagRuns?order_by=-run_after&limit=5")["dag_runs"]
    return [run["dag_run_id"] for run in runs if run["state"] == "running"]


def watched(rest: AirflowRest) -> set[str]:
    """Return the tables whose sinks the triggerer watches now."""
    return {
        one["rendered_map_index"]
        if AirflowFeature.LABELS_OF_DEFERRED.is_here
        else table_of(rest, run, one["map_index"])
        for run in active_runs(rest)
        for one in rest.task_instances(DAG_ID, run)
        if one["task_id"] == "stream_sink" and one["triggerer_job"]
    }


def table_of(rest: AirflowRest, run: str, map_index: int) -> str:
    """Return the table of a mapped task, which its label does not tell while the task is deferred."""
    return str(rest.result(DAG_ID, run, "read_streams")[map_index]["table"])


def test_every_declared_stream_has_one_sink_whatever_dies_and_changes(
    rest: AirflowRest, airflow: LocalAirflow, catalog: Catalog
) -> None:
    for name in ("same", "other", "gone", "new"):
        catalog.create_table(f"kept.{name}", COLUMNS, primary_key=["id"])
    declare(airflow, same=1, other=1, gone=1)
    rest.wait_for_dag(DAG_ID)
    same, other, gone = (sink(airflow, name) for name in ("same", "other", "gone"))
    rest.wait_until(
        lambda: watched(rest) == {"kept.same", "kept.other", "kept.gone"}, "all sinks to be watched", timeout=120
    )

    for name in ("triggerer", "scheduler"):
        airflow.kill(name)
        airflow.restart(name)
    declare(airflow, same=1, other=2, new=1)
    rest.wait_until(lambda: watched(rest) == {"kept.same", "kept.other", "kept.new"}, "the change", timeout=240)

    assert (sink(airflow, "same"), same.report().state) == (same, SinkState.RUNNING)
    assert (gone.report().state, other.report().state) == (SinkState.STOPPED, SinkState.STOPPED)
    assert sink(airflow, "other").directory.name == "job-0002"
    new = sink(airflow, "new")
    assert [one.name for one in Path(airflow.home, "dynamic_table_jobs", "kept.same").glob("job-*")] == ["job-0001"]

    rest.patch(f"/dags/{DAG_ID}", {"is_paused": True})
    [run] = active_runs(rest)
    rest.patch(f"/dags/{DAG_ID}/dagRuns/{run}", {"state": "success"})
    for job in (same, new, sink_of(airflow, "other")):
        wait_until(lambda job=job: job.report().state.is_ended)  # type: ignore[misc]


def sink_of(airflow: LocalAirflow, name: str) -> SinkJob:
    job = newest_job(airflow.home / "dynamic_table_jobs" / f"kept.{name}")
    assert job is not None
    return job
