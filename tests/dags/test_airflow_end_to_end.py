"""End to end: scheduler, workers, triggerer and API of one local Airflow, accessed by REST only."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
import yaml

from airflow_rest import AirflowError, AirflowRest
from dynamic_table.sinks.sink_job import SinkJob, SinkState, newest_job
from dynamic_table.table_pools import MAINTENANCE_POOL
from dynamic_table.versions.airflow_feature import AirflowFeature
from local_airflow import LocalAirflow
from tests.support.airflow_names import needs
from tests.support.deep_tests import crossed, thinned
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from storage_lib import Catalog, DynamicTable

HERE = Path(__file__).resolve().parent
EVENTS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.string())])
DAILY = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])

pytestmark = [pytest.mark.airflow, pytest.mark.integration]


def ready(rest: AirflowRest, *dag_ids: str) -> None:
    """Wait until the DAGs are parsed and unpaused."""
    for dag_id in dag_ids:
        rest.wait_for_dag(dag_id)


def tries(rest: AirflowRest, dag_id: str, run_id: str, task_id: str) -> list[str]:
    return [one["state"] for one in rest.tries(dag_id, run_id, task_id)]


def test_a_table_lives_its_life_through_forms_with_their_defaults(rest: AirflowRest, catalog: Catalog) -> None:
    ready(rest, "provision", "reprocess", "validate", "maintain", "drop_old_partitions")

    rest.run("provision")
    backfill = rest.backfill("reprocess", first="2013-01-01", last="2013-01-02")
    states = rest.wait_for_backfill("reprocess", backfill)
    flights = catalog.load_table("demo.flights")
    after_backfill = flights.to_arrow(columns=["flight_date"]).num_rows
    checked = rest.run("validate")
    by_form = rest.run("reprocess")
    # A reprocessed day is a single file, so there is nothing to merge it with.
    flights.append(flights.to_arrow().slice(0, 1))
    maintained = rest.run("maintain", conf={"tables": ["demo.flights"], "full": True, "retain_last": 1})
    dropped = rest.run("drop_old_partitions")

    assert states == {"2013-01-01": "success", "2013-01-02": "success"}
    assert after_backfill == 842 + 943
    quality = rest.result("validate", checked, "validate_table")
    assert (quality["rows"], quality["checked"], quality["failed"]["critical"]) == (842 + 943, 6, 0)
    assert rest.result("reprocess", by_form, "reprocess_partitions")["rows"] == 842
    assert rest.result("maintain", maintained, "compact_table", map_index=0)["op"] == "compact"
    assert rest.result("drop_old_partitions", dropped, "drop_partitions")["partitions"] == [
        {"flight_date": "2013-01-01"}
    ]
    assert flights.to_arrow(columns=["flight_date"]).num_rows == 943
    operations = [event["extra"]["op"] for event in rest.asset_events("dynamic-table://demo/flights")]
    assert operations[0] == "provision"
    assert sorted(operations[1:3]) == ["reprocess", "reprocess"]
    assert operations[-1] == "drop_partitions"


def test_the_tables_of_a_file_are_made_and_a_day_is_published_to_one(rest: AirflowRest, catalog: Catalog) -> None:
    ready(rest, "provision_tables", "publish")

    made = rest.run("provision_tables")
    published = rest.run("publish", conf={"day": "2013-01-04"})

    provisioned = rest.result("provision_tables", made, "provision_table", map_index=0)
    assert (provisioned["table"], provisioned["drift"]) == ("demo.flights", [])
    flights = catalog.load_table("demo.flights")
    assert flights.branches.list() == ()
    assert rest.result("publish", published, "publish")["version"] == flights.context.file_store.snapshots.latest_id()
    assert rest.result("publish", published, "write_rows")["rows"] == 915
    assert "2013-01-04" in map(str, flights.inspect.partition_values()["flight_date"].to_pylist())


def test_partitions_are_dropped_only_when_somebody_approves(
    rest: AirflowRest, airflow: LocalAirflow, catalog: Catalog
) -> None:
    ready(rest, "drop_old_partitions")
    columns = pa.schema([pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False)])
    table = catalog.create_table("life.daily", columns, primary_key=["day", "id"], partition_by=["day"])
    table.append(pa.table({"day": ["a", "b"], "id": [1, 2]}, schema=columns))
    named = {"table": "life.daily", "partitions": [{"day": "a"}], "needs_approval": True}

    run = rest.trigger("drop_old_partitions", conf=named)
    # "deferred" before Airflow 3.3.
    rest.wait_for_task("drop_old_partitions", run, "approve_drop", "awaiting_input", "deferred")
    # If the answer arrives before the scheduler has seen the worker's end, Airflow asks again.
    gone = f"executor event with state success for .*task_id='approve_drop', run_id='{re.escape(run)}'"
    wait_until(lambda: re.search(gone, (airflow.home / "scheduler.log").read_text()))
    before = table.to_arrow().num_rows
    rest.answer("drop_old_partitions", run, "approve_drop", "Approve")

    assert (rest.wait("drop_old_partitions", run), before) == ("success", 2)
    assert table.to_arrow()["day"].to_pylist() == ["b"]
    assert rest.result("drop_old_partitions", run, "drop_partitions")["partitions"] == [{"day": "a"}]


@needs(AirflowFeature.RUNS_IN_POLICIES)
@pytest.mark.parametrize("whole", thinned([False, True]), ids=["reprocessing", "compaction, too"])
def test_provisioning_makes_the_pools_that_compaction_and_reprocessing_use(
    rest: AirflowRest, catalog: Catalog, *, whole: bool
) -> None:
    ready(rest, "provision", "provision_tables", "reprocess", "maintain")
    name = "life.pooled_and_compacted" if whole else "life.pooled"
    pool = f"dynamic_table.{name}"
    form: dict[str, Any] = {"table": name, "columns": {"day": "STRING", "id": "BIGINT"}, "primary_key": ["day", "id"]}
    form |= {"partition_by": ["day"], "options": None, "comment": None, "pool_slots": 2}
    source = {"table": name, "column": "day", "rows": "tests.support.day_rows:rows_of_day"}

    made = rest.run("provision", conf=form)
    reprocessed = rest.run("reprocess", conf=source)

    assert rest.result("provision", made, "provision_table")["pool"] == pool
    assert rest.get(f"/pools/{pool}")["slots"] == 2
    assert pools_of(rest, "reprocess", reprocessed) == {"reprocess_partitions": pool}
    if not whole:
        return

    again = rest.run("provision", conf=form)
    rest.run("provision_tables")
    unpooled = catalog.create_table("life.unpooled", DAILY, primary_key=["day", "id"], partition_by=["day"])
    for one in (1, 2):
        for table in (catalog.load_table(name), unpooled):
            table.append(pa.table({"day": ["a", "b"], "id": [one] * 2}, schema=DAILY))
    # The smallest unit of a compaction is one bucket.
    form_of_care = {"tables": [name, unpooled.name], "full": True, "retain_last": 9, "gib_per_task": 1e-9}
    maintained = rest.run("maintain", conf=form_of_care)
    other = rest.run("reprocess", conf={**source, "table": "life.unpooled"})

    assert rest.result("provision", again, "provision_table")["pool"] == pool
    assert (rest.get(f"/pools/{pool}")["slots"], rest.get(f"/pools/{MAINTENANCE_POOL}")["slots"]) == (2, 4)
    assert pools_of(rest, "reprocess", other) == {"reprocess_partitions": "default_pool"}
    assert pools_of(rest, "maintain", maintained) == {
        "list_tables": "default_pool",
        "list_compactions": "default_pool",
        f"compact_table {name} day=a: 0": pool,
        f"compact_table {name} day=b: 0": pool,
        f"compact_table {unpooled.name} day=a: 0": MAINTENANCE_POOL,
        f"compact_table {unpooled.name} day=b: 0": MAINTENANCE_POOL,
        f"expire_snapshots {name}": MAINTENANCE_POOL,
        f"expire_snapshots {unpooled.name}": MAINTENANCE_POOL,
        "maintained": "default_pool",
    }
    shares = catalog.load_table(name)
    assert shares.inspect.snapshots()["commit_kind"].to_pylist()[-2:] == ["COMPACT", "COMPACT"]
    assert shares.maintenance.plan_compaction(full=True) == []
    changed = rest.trigger("provision", conf={**form, "pool_slots": 3})
    assert rest.wait("provision", changed) == "failed"
    assert f"pool {pool} has 2 slots, 3 are declared" in rest.log("provision", changed, "provision_table")


@pytest.mark.parametrize(
    "components", thinned([("triggerer",), ("scheduler", "dag-processor", "api-server", "triggerer")]), ids=" ".join
)
def test_the_compose_files_health_checks_say_that_this_airflow_is_well_and_who_is_gone(
    airflow: LocalAirflow, components: tuple[str, ...]
) -> None:
    services = yaml.safe_load((HERE.parents[1] / "docker" / "compose.yaml").read_text())["services"]
    address = urlsplit(airflow.rest.base_url).netloc
    environment = airflow.settings() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    checks = {
        name: [word.replace("127.0.0.1:8080", address) for word in service["healthcheck"]["test"][1:]]
        for name, service in services.items()
        if name.removeprefix("airflow-") in components and "healthcheck" in service
    }
    assert len(checks) == len(components)
    # Services of this kind do not run here.
    checks["nobody"] = [word.replace("TriggererJob", "NoSuchJob") for word in checks["airflow-triggerer"]]

    said = {name: subprocess.run(check, env=environment, check=False).returncode for name, check in checks.items()}

    assert {name for name, code in said.items() if code} == {"nobody"}


def pools_of(rest: AirflowRest, dag_id: str, run_id: str) -> dict[str, str]:
    return {
        " ".join(filter(None, (one["task_id"], one["rendered_map_index"]))): one["pool"]
        for one in rest.task_instances(dag_id, run_id)
    }


def test_people_who_click_at_once_do_not_wait_for_each_other(rest: AirflowRest) -> None:
    ready(rest, "lost_race_daily", "publish")
    rest.patch("/dags/lost_race_daily", {"is_paused": True})

    def trigger_and_delete() -> None:
        for _ in range(10):
            rest.delete_run("lost_race_daily", rest.trigger("lost_race_daily"))

    def pause() -> None:
        for _ in range(20):
            rest.patch("/dags/publish", {"is_paused": False})

    # Otherwise the first few would block for SQLite's busy timeout of 60 s and fail.
    with ThreadPoolExecutor(2) as pool:
        for person in [pool.submit(click) for click in (trigger_and_delete, pause)]:
            person.result()


def test_a_bad_value_in_the_form_starts_nothing(rest: AirflowRest) -> None:
    ready(rest, "provision")

    with pytest.raises(AirflowError, match="400"):
        rest.trigger("provision", conf={"table": "no database"})


def test_a_wrong_input_fails_on_the_first_try(rest: AirflowRest) -> None:
    ready(rest, "drop_old_partitions")

    run = rest.trigger("drop_old_partitions", conf={"table": "no.such_table"})

    assert rest.wait("drop_old_partitions", run) == "failed"
    assert tries(rest, "drop_old_partitions", run, "drop_partitions") == ["failed"]


def test_a_compaction_that_loses_a_race_succeeds_on_its_second_try(rest: AirflowRest, events: DynamicTable) -> None:
    ready(rest, "lost_race")
    before = sorted(events.to_arrow().to_pylist(), key=lambda row: int(row["id"]))

    run = rest.run("lost_race")

    attempts = rest.tries("lost_race", run, "compact_table")
    assert [one["try_number"] for one in attempts] == [1, 2]
    assert attempts[-1]["state"] == "success"
    assert "CommitConflictError" in rest.log("lost_race", run, "compact_table", try_number=1)
    ended, started = (datetime.fromisoformat(when) for when in (attempts[0]["end_date"], attempts[1]["start_date"]))
    assert 1 <= (started - ended).total_seconds() < (15 if AirflowFeature.RETRY_POLICIES.is_here else 40)
    assert rest.result("lost_race", run, "compact_table")["version"] == events.context.file_store.snapshots.latest_id()
    assert sorted(events.to_arrow().to_pylist(), key=lambda row: int(row["id"])) == before


def test_a_sink_survives_the_death_of_its_worker_and_is_found_again(
    rest: AirflowRest, airflow: LocalAirflow, events: DynamicTable
) -> None:
    ready(rest, "light_stream_on_worker")
    run = rest.trigger("light_stream_on_worker")
    job = running_job(airflow, events)
    sink_pid = pid_of(job)

    os.kill(parent_of(sink_pid), signal.SIGKILL)
    wait_until(lambda: len(rest.tries("light_stream_on_worker", run, "stream_sink")) == 2)
    rest.wait_for_task("light_stream_on_worker", run, "stream_sink", "running")

    assert (newest_job(job.directory.parent), pid_of(job)) == (job, sink_pid)
    assert job.report().state is SinkState.RUNNING
    job.request_stop("the test is over")
    assert rest.wait("light_stream_on_worker", run) == "success"
    assert rest.result("light_stream_on_worker", run, "stream_sink")["job"] == str(job.directory)


@pytest.mark.parametrize(
    ("dag_id", "verdict"), crossed(["light_stream_on_worker", "light_stream_deferred"], ["success", "failed"])
)
def test_marking_the_task_stops_its_sink_cleanly(
    rest: AirflowRest, airflow: LocalAirflow, events: DynamicTable, dag_id: str, verdict: str
) -> None:
    ready(rest, dag_id)
    run = rest.trigger(dag_id)
    job = running_job(airflow, events)
    if dag_id.endswith("deferred"):
        rest.wait_until_watched(dag_id, run, "stream_sink")
    else:
        rest.wait_for_task(dag_id, run, "stream_sink", "running")

    rest.mark(dag_id, run, "stream_sink", verdict)

    wait_until(lambda: job.report().state is SinkState.CANCELLED)
    assert rest.wait(dag_id, run) == verdict


def test_marking_a_task_that_nobody_watches_stops_its_sink_too(
    rest: AirflowRest, airflow: LocalAirflow, events: DynamicTable
) -> None:
    ready(rest, "light_stream_deferred")
    # Killed rather than stopped: a process stopped during a write holds SQLite's only lock, and all writers wait.
    airflow.kill("triggerer")
    try:
        run = rest.trigger("light_stream_deferred")
        job = running_job(airflow, events)
        rest.wait_for_task("light_stream_deferred", run, "stream_sink", "deferred")

        rest.mark("light_stream_deferred", run, "stream_sink", "success")

        wait_until(lambda: job.report().state is SinkState.CANCELLED)
    finally:
        airflow.restart("triggerer")


def test_a_sink_that_fails_after_some_batches_is_started_again_within_its_try(
    rest: AirflowRest, airflow: LocalAirflow, events: DynamicTable
) -> None:
    ready(rest, "light_stream_faltering")
    folder = airflow.home / "dynamic_table_jobs" / events.name
    earlier = newest_job(folder)
    run = rest.trigger("light_stream_faltering")

    wait_until(lambda: (job := newest_job(folder)) != earlier and job)
    first = newest_job(folder)
    wait_until(lambda: newest_job(folder) != first)

    rest.mark("light_stream_faltering", run, "stream_sink", "success")
    assert rest.wait("light_stream_faltering", run) == "success"
    assert len(rest.tries("light_stream_faltering", run, "stream_sink")) == 1
    assert "started again (1 of 5 times in a row)" in rest.log("light_stream_faltering", run, "stream_sink")


def test_a_commit_ends_a_wait_in_the_triggerer_and_starts_the_dag_that_watches_the_table(
    rest: AirflowRest, catalog: Catalog
) -> None:
    table = catalog.create_table("life.watched", DAILY, primary_key=["day", "id"], partition_by=["day"])
    table.append(pa.table({"day": ["a"], "id": [1]}))
    ready(rest, "wait_for_a_snapshot", "after_a_commit")
    run = rest.trigger("wait_for_a_snapshot")
    rest.wait_for_task("wait_for_a_snapshot", run, "wait", "deferred")
    # A watcher starts after the current snapshot: it reports only commits after its own start.
    told = 0

    def is_told() -> bool:
        nonlocal told
        if not rest.get("/dags/after_a_commit/dagRuns")["dag_runs"]:
            told += 1
            table.append(pa.table({"day": ["b"], "id": [told]}))
            return False
        return True

    rest.wait_until(is_told, "the watcher to report a commit", timeout=120)

    assert rest.wait("wait_for_a_snapshot", run) == "success"
    assert rest.result("wait_for_a_snapshot", run, "wait")["version"] >= 2
    [first, *_] = rest.get("/dags/after_a_commit/dagRuns?order_by=start_date")["dag_runs"]
    assert rest.wait("after_a_commit", first["dag_run_id"]) == "success"
    events = rest.result("after_a_commit", first["dag_run_id"], "told")
    assert [(each["table"], each["kind"], each["rows"]) for each in events[:1]] == [("life.watched", "APPEND", 1)]
    assert events[0]["partitions"] == [{"day": "b"}]


def running_job(airflow: LocalAirflow, table: DynamicTable) -> SinkJob:
    """Wait for the sink of the run that was just triggered."""
    folder = airflow.home / "dynamic_table_jobs" / table.name

    def running() -> bool:
        job = newest_job(folder)
        return job is not None and job.report().state is SinkState.RUNNING

    wait_until(running)
    job = newest_job(folder)
    assert job is not None
    return job


def pid_of(job: SinkJob) -> int:
    return int(json.loads((job.directory / "process.json").read_text())["pid"])


def parent_of(pid: int) -> int:
    fields: Any = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def test_nobody_is_answered_without_a_password_or_under_another_host_name(rest: AirflowRest) -> None:
    for user, password in (("", ""), ("admin", "admin"), ("admin", ""), ("Anonymous", "Anonymous")):
        with pytest.raises(AirflowError, match=r"answered 40[01]"):
            AirflowRest(rest.base_url, user, password).dag_ids()

    rebound = httpx.get(f"{rest.base_url}/api/v2/version", headers={"Host": "rebound.example"})

    assert rebound.status_code == 400
    assert "maintain" in rest.dag_ids()
