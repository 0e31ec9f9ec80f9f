"""Random lives of a file of streams: whatever changed while nobody watched, each declared table has the sink it needs.

Jobs are directories without a process: starting one writes its files, and asking it to stop ends it at once.
"""

from __future__ import annotations

import json
import os
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dynamic_table.files.private_files import write_private
from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.operators.supervise_sinks import ReadStreamsOperator, SuperviseSinkOperator
from dynamic_table.sinks import sink_job
from dynamic_table.sinks.sink_job import SinkJob, newest_job
from dynamic_table.triggers.stream_sink_trigger import RELEASED, REPORT_DUE
from tests.support.airflow_names import TaskDeferred
from tests.support.deep_tests import thinned
from tests.support.task_context import DictStore, task_context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TABLES = ("shop.customers", "shop.orders", "shop.years")

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def jobs(warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the connection's directory of jobs, none of which has a process."""
    extra = {"warehouse": str(warehouse), "jobs_directory": str(tmp_path / "jobs"), "options": {"log.system": "none"}}
    monkeypatch.setenv("AIRFLOW_CONN_DYNAMIC_TABLE_DEFAULT", json.dumps({"conn_type": "dynamic_table", "extra": extra}))

    def launch(job: SinkJob, _command: object, spec_json: str, *, environment: Mapping[str, str]) -> None:
        assert environment == {}
        write_private(job.spec_path, spec_json)
        own = {"pid": os.getpid(), "started": sink_job._started(os.getpid())}
        write_private(job.directory / "process.json", json.dumps(own))
        write_private(job.heartbeat_path, json.dumps({"state": "RUNNING", "batch_id": 1}))

    def request_stop(job: SinkJob, reason: str) -> None:
        write_private(job.stop_path, reason)
        write_private(job.heartbeat_path, json.dumps({"state": "STOPPED", "batch_id": 1}))

    monkeypatch.setattr(SinkJob, "launch", launch)
    monkeypatch.setattr(SinkJob, "request_stop", request_stop)
    monkeypatch.setattr(SinkJob, "kill", lambda job: pytest.fail(f"{job.directory} is killed"))
    return tmp_path / "jobs"


def declared(topics: Mapping[str, str]) -> str:
    streams = {
        table: {"columns": {"id": "BIGINT"}, "stream": {"source": {"kind": "debezium_json", "name": topic}}}
        for table, topic in topics.items()
    }
    return json.dumps({"tables": streams})


def supervise(stream: Mapping[str, Any], map_index: int, store: DictStore, state: str | None, run_id: str) -> SinkJob:
    """Let a mapped task start or resume, and return the job that it waits for."""
    task = SuperviseSinkOperator(task_id="sink", **stream, deferrable=True)
    context = task_context(task, store=store, run_id=run_id, map_index=map_index)
    resume: Callable[[Any], Any] = task.execute
    if state is not None:
        resume = partial(task.execute_complete, event={"directory": store["sink_job"], "state": state})
    with pytest.raises(TaskDeferred) as deferred:
        resume(context)
    trigger: Any = deferred.value.trigger
    assert store["sink_job"] == trigger.directory
    return SinkJob(Path(trigger.directory))


def active_topics(jobs: Path) -> dict[str, str]:
    """Return the topic that each table's active sink reads."""
    newest = {path.name: newest_job(path) for path in jobs.glob("*.*")}
    running = {table: job for table, job in newest.items() if job is not None and job.report().state.is_active}
    return {table: json.loads(job.spec_text() or "")["source"]["name"] for table, job in running.items()}


def test_a_cleared_task_of_a_map_index_watches_the_table_that_it_has_now(jobs: Path, tmp_path: Path) -> None:
    store = DictStore()
    orders = {"table": "shop.orders", "source": {"kind": "debezium_json", "name": "orders"}}
    years = {"table": "shop.years", "source": {"kind": "debezium_json", "name": "years"}}
    first = supervise(orders, 0, store, None, "monday")

    second = supervise(years, 0, store, None, "monday")

    assert (first.directory.parent.name, second.directory.parent.name) == ("shop.orders", "shop.years")
    assert active_topics(jobs) == {"shop.orders": "orders", "shop.years": "years"}
    assert supervise(orders, 1, DictStore(), None, "monday") == first


def test_a_task_whose_dag_names_another_table_stops_its_former_sink(jobs: Path) -> None:
    store = DictStore()
    for table in ("shop.orders", "shop.years"):
        task = StreamSinkOperator(
            task_id="sink", table=table, source={"kind": "debezium_json", "name": "c"}, deferrable=True
        )
        with pytest.raises(TaskDeferred):
            task.execute(task_context(task, store=store))

    assert active_topics(jobs) == {"shop.years": "c"}


@pytest.mark.parametrize("seed", thinned(range(20), 5))
def test_each_declared_table_has_its_sink_however_the_file_changed(seed: int, jobs: Path, tmp_path: Path) -> None:
    draw = random.Random(seed)  # noqa: S311  a seeded test
    stores: dict[int, DictStore] = {}
    run_id = "run 0"
    for step in range(12):
        chosen = draw.sample(TABLES, draw.randint(1, len(TABLES)))
        topics = {table: draw.choice(("a", "b")) for table in chosen}
        (tmp_path / "tables.yaml").write_text(declared(topics))
        if draw.random() < 0.3:  # the next run, with state stores of its own
            run_id, stores = f"run {step}", {}
        reader = ReadStreamsOperator(task_id="read", source="tables.yaml")
        streams = reader.execute(task_context(reader, folder=tmp_path, run_id=run_id))

        watched = []
        for map_index, stream in enumerate(streams):
            store = stores.setdefault(map_index, DictStore())
            waits = "sink_job" in store and SinkJob(Path(store["sink_job"])).report().state.is_active
            state = draw.choice([None, REPORT_DUE]) if waits else None
            watched.append(supervise(stream, map_index, store, state, run_id))

        assert active_topics(jobs) == topics, f"seed {seed}, step {step}"
        assert {job.directory.parent.name for job in watched} == set(topics)
        assert all(job == newest_job(job.directory.parent) for job in watched)


def test_a_task_that_hands_over_another_tables_sink_takes_its_own_first(jobs: Path) -> None:
    store = DictStore()
    orders = {"table": "shop.orders", "source": {"kind": "debezium_json", "name": "orders"}}
    supervise(orders, 0, store, None, "monday")

    supervise({**orders, "table": "shop.years"}, 0, store, RELEASED, "monday")

    assert active_topics(jobs) == {"shop.orders": "orders", "shop.years": "orders"}
