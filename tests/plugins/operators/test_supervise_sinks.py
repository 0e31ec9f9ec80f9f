"""One sink per declared stream, across runs: handed over, changed, removed, and unaffected by an invalid file."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.operators.supervise_sinks import (
    AwaitStreamChangesOperator,
    ReadStreamsOperator,
    SuperviseSinkOperator,
)
from dynamic_table.sinks.sink_job import SinkJob, SinkState, newest_job
from dynamic_table.triggers.file_change_trigger import FileChangeTrigger, file_stamp
from dynamic_table.triggers.stream_sink_trigger import RELEASED, REPORT_DUE, StreamSinkTrigger
from storage_lib.errors import InvalidInputError
from tests.support import light_sink
from tests.support.airflow_names import TaskDeferred
from tests.support.task_context import DictStore, task_context
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

LIGHT_SINK = (sys.executable, str(Path(light_sink.__file__)))
DECLARED = """
tables:
  db.t:
    columns: {id: BIGINT}
    stream: {source: {kind: debezium_json, name: changes}, trigger_seconds: 10}
  db.quiet:
    columns: {id: BIGINT}
"""
STREAM: dict[str, Any] = {
    "table": "db.t",
    "source": {"kind": "debezium_json", "name": "changes"},
    "trigger_seconds": 10,
}

pytestmark = pytest.mark.usefixtures("table", "warehouse")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the directory of the sinks, which are killed at the end."""
    root = tmp_path / "jobs"
    for module in ("detached_job", "stream_sink", "supervise_sinks"):
        monkeypatch.setattr(f"dynamic_table.operators.{module}.jobs_root", lambda _hook, _chosen=None: root)
    yield root
    for directory in root.glob("*/job-*"):
        SinkJob(directory).kill()


def keep(run_id: str, **declared: Any) -> tuple[SinkJob, StreamSinkTrigger]:
    """Let a run's task start or find the sink."""
    task = SuperviseSinkOperator(
        task_id="sink",
        **{**STREAM, **declared},
        command=LIGHT_SINK,
        deferrable=True,
        poll_seconds=0.02,
        stop_timeout_seconds=120,
    )
    with pytest.raises(TaskDeferred) as deferred:
        task.execute(task_context(task, store=DictStore(), run_id=run_id))
    trigger: Any = deferred.value.trigger
    job = SinkJob(Path(trigger.directory))
    wait_until(lambda: job.report().state is SinkState.RUNNING)
    return job, trigger


def read(folder: Path) -> list[dict[str, Any]]:
    task = ReadStreamsOperator(task_id="read", source="tables.yaml")
    return task.execute(task_context(task, folder=folder))


def await_changes(folder: Path, run_id: str, streams: Any) -> Any:
    """Return the trigger for which the task defers, or its result."""
    task = AwaitStreamChangesOperator(task_id="await", source="tables.yaml", streams=streams, poll_seconds=0.01)
    try:
        return task.execute(task_context(task, folder=folder, run_id=run_id))
    except TaskDeferred as deferred:
        return deferred.trigger


async def fired(trigger: Any) -> Any:
    return (await anext(trigger.run())).payload


def test_the_next_run_finds_the_sink_of_the_one_before(jobs: Path) -> None:
    first, _ = keep("monday")
    second, _ = keep("tuesday")

    assert second == first
    assert [path.name for path in jobs.glob("db.t/job-*")] == ["job-0001"]


def test_a_stream_that_is_declared_otherwise_gets_a_new_sink_after_the_old_one_has_ended(jobs: Path) -> None:
    old, _ = keep("monday")

    new, _ = keep("tuesday", trigger_seconds=20)

    assert old.report().state is SinkState.STOPPED
    assert (new.directory.name, new.report().state) == ("job-0002", SinkState.RUNNING)
    assert newest_job(jobs / "db.t") == new


def test_a_run_that_hands_over_ends_and_its_sink_goes_on(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED)
    job, trigger = keep("monday")
    released = await_changes(tmp_path, "monday", [])

    event = asyncio.run(fired(trigger))

    task, store = SuperviseSinkOperator(task_id="sink", **STREAM), DictStore(sink_job=str(job.directory))
    result = task.execute_complete(task_context(task, store=store, run_id="monday"), event)
    assert (event["state"], Path(released).parent) == (RELEASED, jobs / ".released")
    assert (result["job"], store) == (str(job.directory), {})
    assert job.report().state is SinkState.RUNNING
    assert keep("tuesday")[0] == job


def test_the_release_of_one_run_is_not_that_of_another(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED)
    await_changes(tmp_path, "monday", [])

    _, trigger = keep("tuesday")

    assert trigger.release_path
    assert not Path(trigger.release_path).exists()
    assert Path(trigger.release_path).parent == jobs / ".released"


def test_the_sink_of_a_stream_that_is_gone_is_stopped_and_nobody_elses(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED.replace("db.t:", "db.other:"))
    job, _ = keep("monday")
    strange = jobs / "db.strange" / "job-0001"
    strange.mkdir(parents=True)
    (strange / "owner").write_text("airflow/stream/by_hand/stream_sink/-1")

    streams = read(tmp_path)

    assert [stream["table"] for stream in streams] == ["db.other"]
    wait_until(lambda: job.report().state is SinkState.STOPPED)
    assert not (strange / "stop").exists()


def test_a_file_says_which_tables_have_a_stream(tmp_path: Path, jobs: Path) -> None:
    (tmp_path / "tables.yaml").write_text(DECLARED)

    assert read(tmp_path) == [STREAM]


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        ("{trigger_seconds: 2}", "at least a source"),
        ("{source: {kind: debezium_json}}", "source['name'] is None"),
        ("{source: {kind: debezium_json, name: c}, seconds: 2}", "unknown key 'seconds'"),
        ("{source: {kind: debezium_json, name: c}, trigger_seconds: soon}", "trigger_seconds is 'soon'"),
        ("{source: {kind: debezium_json, name: c, options: {log.kafka.sasl.plain.password: x}}}", "is a secret"),
        ("changes", "stream is 'changes'"),
    ],
)
def test_a_wrong_stream_is_told_with_its_table_and_touches_no_sink(
    tmp_path: Path, jobs: Path, stream: str, said: str
) -> None:
    job, _ = keep("monday")
    (tmp_path / "tables.yaml").write_text(f"tables: {{db.x: {{columns: {{id: BIGINT}}, stream: {stream}}}}}")

    with pytest.raises(InvalidInputError) as refused:
        read(tmp_path)

    assert "db.x" in str(refused.value)
    assert said in str(refused.value)
    assert job.report().state is SinkState.RUNNING
    assert jobs.is_dir()


def test_what_is_declared_is_compared_when_the_file_is_touched(tmp_path: Path, jobs: Path) -> None:
    file = tmp_path / "tables.yaml"
    file.write_text(DECLARED)
    waiting = await_changes(tmp_path, "monday", [STREAM])
    assert isinstance(waiting, FileChangeTrigger)

    file.write_text(DECLARED + "# a remark\n")
    assert asyncio.run(fired(waiting)) == {"path": str(file)}
    assert isinstance(await_changes(tmp_path, "monday", [STREAM]), FileChangeTrigger)
    file.write_text("tables: {broken")
    assert isinstance(await_changes(tmp_path, "monday", [STREAM]), FileChangeTrigger)
    file.write_text(DECLARED.replace("10", "20"))

    assert isinstance(await_changes(tmp_path, "monday", [STREAM]), str)
    assert len(list((jobs / ".released").iterdir())) == 1


def test_a_file_that_goes_and_comes_is_another() -> None:
    assert file_stamp(Path("/no/such/file")) == ""
    assert file_stamp(Path(__file__)) != ""


def test_heartbeat_and_last_commit_are_told_while_the_sink_runs(jobs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, trigger = keep("monday", report_seconds=0)
    event = asyncio.run(fired(trigger))
    task = SuperviseSinkOperator(task_id="sink", **STREAM, deferrable=True)
    context = task_context(task, store=DictStore(), run_id="monday")

    with pytest.raises(TaskDeferred):
        task.execute_complete(context, event)

    told = context["ti"].pushed["sink"]  # type: ignore[attr-defined]  # the test's own
    assert event["state"] == REPORT_DUE
    assert (told["state"], told["snapshot_id"], told["commit_millis"]) == ("running", 7, 1_000)
    assert told["heartbeat_age_seconds"] < 60
    assert told["batch_id"] >= 1
    assert str(job.directory) in capsys.readouterr().out
    assert jobs.is_dir()
