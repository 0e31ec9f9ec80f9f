"""The listener of a task's end stops the task's sink and no other."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.sinks import sink_listener
from dynamic_table.sinks.sink_job import BY_HAND, SINK_JOB_KEY, SinkJob, open_job_directory
from dynamic_table.versions.airflow_feature import AirflowFeature
from dynamic_table.versions.kept_state import task_state_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SinkJob:
    """Return the job that the state store of task ``sink`` names."""
    started = open_job_directory(tmp_path / "db.t")
    started.note_task(dag_id="dag", run_id="run", task_id="sink", map_index=3)
    if AirflowFeature.TASK_STATE.is_here:
        stored = {("sink", 3): json.dumps(str(started.directory))}
        backend = SimpleNamespace(get=lambda scope, _key: stored.get((scope.task_id, scope.map_index)))
        monkeypatch.setattr("airflow.state.get_state_backend", lambda: backend)
    else:
        monkeypatch.setenv("AIRFLOW__DYNAMIC_TABLE__STATE_DIRECTORY", str(tmp_path / "state"))
        task_state_store({"ti": ended("running")}).set(SINK_JOB_KEY, str(started.directory))
    return started


def ended(state: str, *, task_id: str = "sink", map_index: int = 3, module: str = "airflow.models.taskinstance") -> Any:
    kind = type("TaskInstance", (SimpleNamespace,), {"__module__": module})
    return kind(dag_id="dag", run_id="run", task_id=task_id, map_index=map_index, state=state)


@pytest.mark.parametrize("verdict", ["success", "failed", "skipped"])
def test_a_verdict_on_a_task_stops_its_sink(job: SinkJob, verdict: str) -> None:
    getattr(sink_listener, f"on_task_instance_{verdict}")(ended(verdict))

    assert job.stop_path.read_text() == BY_HAND


@pytest.mark.parametrize(
    "task_instance",
    [
        ended("up_for_retry"),
        ended("failed", task_id="another"),
        ended("failed", map_index=2),
        ended("failed", module="airflow.sdk.execution_time.task_runner"),
    ],
    ids=["will be tried again", "has no sink", "is another mapped one", "is a worker's"],
)
def test_any_other_task_stops_nothing(job: SinkJob, task_instance: Any) -> None:
    sink_listener.on_task_instance_failed(task_instance)

    assert not job.stop_path.exists()


@pytest.mark.parametrize("task", [None, "another"])
def test_a_directory_that_is_not_of_the_tasks_job_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str | None
) -> None:
    """Users may write into the state of a task; the directory may be any."""
    named = SinkJob(tmp_path / "job-0001")
    named.directory.mkdir()
    if task is not None:
        named.note_task(dag_id="dag", run_id="run", task_id=task, map_index=3)
    monkeypatch.setattr(sink_listener, "state_of_task", lambda _task_instance, _key: str(named.directory))

    sink_listener.on_task_instance_failed(ended("failed"))

    assert not named.stop_path.exists()


@pytest.mark.skipif(AirflowFeature.KILLED_TRIGGERS.is_here, reason="its triggers stop the sinks")
@pytest.mark.parametrize(
    ("verdict", "msg", "stops"),
    [
        ("success", "", True),
        ("failed", "", True),
        ("failed", "timed_out", True),
        ("success", "success", False),
        ("failed", "task_failure", False),
    ],
)
def test_a_verdict_on_a_run_stops_its_sinks_but_not_that_its_tasks_have_ended(
    job: SinkJob, verdict: str, msg: str, *, stops: bool
) -> None:
    tasks = [ended("success", task_id="another"), ended("success")]
    dag_run: Any = SimpleNamespace(get_task_instances=lambda: tasks)

    getattr(sink_listener, f"on_dag_run_{verdict}")(dag_run, msg)

    assert job.stop_path.exists() == stops
