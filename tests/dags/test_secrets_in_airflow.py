"""Secrets planted in a connection appear in no output or file of a real Airflow and its tasks.

The output of the folder's other tests, which run before, is searched as well.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from dynamic_table.sinks.sink_job import SinkJob
from tests.support.listening_sockets import is_loopback, listening
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from airflow_rest import AirflowRest
    from local_airflow import LocalAirflow
    from storage_lib import DynamicTable

pytestmark = [pytest.mark.airflow, pytest.mark.integration]

WORD = b"planted-"
DAG_ID = "light_stream_deferred"
OF_API = {
    "connection_id": "planted",
    "conn_type": "dynamic_table",
    "password": "planted-login-4713",
    "extra": json.dumps({"warehouse": "/tables", "secret_options": json.dumps({"uri": "x://u:planted-uri-4714@h"})}),
}


@pytest.fixture
def job(airflow: LocalAirflow, rest: AirflowRest, events: DynamicTable) -> SinkJob:
    """Start a sink with the secrets in its environment."""
    rest.wait_for_dag(DAG_ID)
    rest.trigger(DAG_ID)
    jobs = airflow.home / "dynamic_table_jobs" / events.name

    def newest() -> SinkJob | None:
        found = sorted(jobs.glob("job-*/heartbeat.json"))
        return SinkJob(found[-1].parent) if found else None

    wait_until(lambda: (one := newest()) is not None and one.report().state.is_active)
    running = newest()
    assert running is not None
    return running


def test_a_planted_secret_is_shown_nowhere_and_nothing_listens_beyond_this_machine(
    airflow: LocalAirflow, rest: AirflowRest, job: SinkJob
) -> None:
    pid = json.loads((job.directory / "process.json").read_text())["pid"]
    processes = airflow.process_ids() | {pid}
    # It exists only in the environment of the sink, which only its owner can read.
    assert WORD in Path(f"/proc/{pid}/environ").read_bytes()

    assert [line for line in map(command_line, processes) if WORD in line] == []
    sockets = listening(processes)
    assert sockets
    assert [each for each in sockets if not is_loopback(each[0])] == []

    rest.post("/connections", OF_API)
    for path in ("/connections", "/connections/planted", "/dags", "/eventLogs?limit=100", "/assets/events?limit=100"):
        assert WORD.decode() not in json.dumps(rest.get(path)), path
    for run in rest.pages(f"/dags/{DAG_ID}/dagRuns?", "dag_runs"):
        assert WORD.decode() not in json.dumps(rest.task_instances(DAG_ID, run["dag_run_id"]))
    token = {"Authorization": f"Bearer {login(rest)}"}
    for page in ("api/tables", "api/table?name=life.events"):
        answer = httpx.get(f"{rest.base_url}/dynamic-tables/{page}", headers=token, timeout=60)
        assert (answer.status_code, WORD in answer.content) == (200, False), page

    job.request_stop("enough")
    wait_until(lambda: job.report().state.is_ended)
    found = [path for path in airflow.home.rglob("*") if path.is_file() and WORD in path.read_bytes()]
    assert found == []
    assert stat.S_IMODE(airflow.home.stat().st_mode) == 0o700
    assert stat.S_IMODE(job.spec_path.stat().st_mode) == 0o600


def test_a_form_that_names_any_function_runs_none(rest: AirflowRest, events: DynamicTable) -> None:
    rest.wait_for_dag("reprocess")
    form: dict[str, Any] = {"table": events.name, "rows": "subprocess:run", "rows_kwargs": {"args": "true"}}
    run = rest.trigger("reprocess", conf=form)

    assert rest.wait("reprocess", run) == "failed"
    tries = rest.tries("reprocess", run, "reprocess_partitions")
    assert [one["state"] for one in tries] == ["failed"]
    assert "may not be called" in rest.log("reprocess", run, "reprocess_partitions")


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def login(rest: AirflowRest) -> str:
    body = {"username": rest.user, "password": rest.password}
    token: str = httpx.post(f"{rest.base_url}/auth/token", json=body, timeout=60).json()["access_token"]
    return token
