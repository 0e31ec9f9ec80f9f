"""A sink on another host or in another container lives as long as its heartbeat changes, and no second one starts."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dynamic_table.files.private_files import write_private
from dynamic_table.operators.stream_sink import StreamSinkOperator
from dynamic_table.sinks import sink_job
from dynamic_table.sinks.sink_job import BY_HAND, SinkJob, SinkState, SinkWatch, newest_job, open_job_directory
from dynamic_table.versions.sdk_exceptions import AirflowFailException
from tests.support.airflow_names import TaskDeferred
from tests.support.deep_tests import thinned
from tests.support.task_context import DictStore, task_context

STALE = 120.0


class Hosts:
    """Two hosts with a common directory of jobs; `at` says on which one the test looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = "a"
        self.now = 1000.0
        self.lives = True
        self.on_sleep: Callable[[], None] = lambda: None
        monkeypatch.setattr(sink_job, "_place", lambda: self.at)
        # The pid that the job has on its host belongs to no process, or to another one, elsewhere.
        monkeypatch.setattr(sink_job, "_started", lambda _pid: 7 if self.lives and self.at == "a" else 0)
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(sink_job, "time", clock)
        monkeypatch.setattr("dynamic_table.operators.detached_job.time", clock)
        monkeypatch.setattr(os, "kill", lambda *_: None)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(monkeypatch)


def started(jobs: Path, owner: str = "x") -> SinkJob:
    """Start a job on host ``a``."""
    job = open_job_directory(jobs / "db.t", owner=owner)
    write_private(job.directory / "process.json", json.dumps({"pid": os.getpid(), "started": 7, "place": "a"}))
    beat(job, 1)
    return job


def beat(job: SinkJob, number: int, state: str = "RUNNING") -> None:
    write_private(job.heartbeat_path, json.dumps({"state": state, "batch_id": number}))


def test_a_sink_is_not_lost_at_the_first_look_from_another_host(hosts: Hosts, tmp_path: Path) -> None:
    job = started(tmp_path)
    hosts.at = "b"
    watch = SinkWatch(job, stale_seconds=STALE)

    assert watch.look().state is SinkState.RUNNING
    hosts.now += STALE - 1
    beat(job, 2)
    assert watch.look().state is SinkState.RUNNING
    hosts.now += STALE + 1
    assert watch.look().state is SinkState.LOST


def test_a_sink_that_was_given_up_stays_lost_and_is_asked_to_stop_if_it_comes_back(
    hosts: Hosts, tmp_path: Path
) -> None:
    job = started(tmp_path)
    hosts.at = "b"

    job.kill()

    assert job.report().state is SinkState.LOST
    assert hosts.lives, "its pid means another process here"
    assert job.is_superseded
    beat(job, 2)
    assert job.report().state is SinkState.STOPPING
    beat(job, 3, "STOPPED")
    assert job.report().state is SinkState.STOPPED


def test_a_reason_to_stop_that_a_person_gave_is_kept(hosts: Hosts, tmp_path: Path) -> None:
    job = started(tmp_path)
    hosts.at = "b"
    job.request_stop(BY_HAND)

    job.kill()

    assert job.stop_path.read_text() == BY_HAND


def test_a_job_of_an_earlier_version_is_seen_by_its_pid(hosts: Hosts, tmp_path: Path) -> None:
    job = started(tmp_path)
    write_private(job.directory / "process.json", json.dumps({"pid": os.getpid(), "started": 7}))

    assert job.report().state is SinkState.RUNNING
    hosts.lives = False
    assert job.report().state is SinkState.LOST


@pytest.fixture
def start_on_b(
    hosts: Hosts, table: object, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Any]:
    """Return a function that lets another task start a sink on host ``b``, and returns its job or its error."""

    def launch(job: SinkJob, _command: object, spec_json: str, *, environment: object) -> None:
        write_private(job.spec_path, spec_json)
        write_private(job.directory / "process.json", json.dumps({"pid": os.getpid(), "started": 7, "place": hosts.at}))

    def start() -> Any:
        hosts.at = "b"
        task = StreamSinkOperator(
            task_id="sink",
            table="db.t",
            source={"kind": "debezium_json", "name": "c"},
            jobs_directory=str(tmp_path / "jobs"),
            deferrable=True,
            stale_seconds=STALE,
        )
        try:
            task.execute(task_context(task, store=DictStore()))
        except TaskDeferred as deferred:
            return SinkJob(Path(deferred.trigger.directory))
        except AirflowFailException as refused:
            return refused
        return None

    monkeypatch.setattr(SinkJob, "launch", launch)
    return start


def test_no_second_sink_starts_while_one_runs_on_another_host(
    hosts: Hosts, tmp_path: Path, start_on_b: Callable[[], Any]
) -> None:
    job = started(tmp_path / "jobs")
    hosts.on_sleep = lambda: beat(job, int(hosts.now))

    refused = start_on_b()

    assert isinstance(refused, AirflowFailException)
    assert "has a sink already" in str(refused)
    assert newest_job(tmp_path / "jobs" / "db.t") == job


def test_a_sink_follows_one_whose_host_is_gone(hosts: Hosts, tmp_path: Path, start_on_b: Callable[[], Any]) -> None:
    job = started(tmp_path / "jobs")

    following = start_on_b()

    assert following.directory.name == "job-0002"
    assert hosts.now > 1000 + STALE
    assert job.report().state is SinkState.LOST


@pytest.mark.parametrize("seed", thinned(range(100), 10))
def test_random_lives_seen_from_two_hosts(seed: int, hosts: Hosts, tmp_path: Path) -> None:
    """The other host never takes a sink for lost that beats, and always one that has been silent for long."""
    draw = random.Random(seed)  # noqa: S311  seeded
    job = started(tmp_path)
    watches = {host: SinkWatch(job, stale_seconds=STALE) for host in "ab"}
    # A heartbeat is as old as the first look that sees it.
    for hosts.at in "ab":
        watches[hosts.at].look()
    number, changed, ended = 1, hosts.now, None
    for _ in range(60):
        hosts.now += draw.uniform(0, STALE / 3)
        move = draw.choice(["beat", "beat", "beat", "silence", "stop", "die", "end"])
        if move == "beat" and hosts.lives and ended is None:
            number, changed = number + 1, hosts.now
            beat(job, number)
        elif move == "stop" and draw.random() < 0.2:
            job.request_stop("enough")
        elif move == "die" and draw.random() < 0.1:
            hosts.lives = False
        elif move == "end" and draw.random() < 0.1 and hosts.lives and ended is None:
            ended, changed = "STOPPED", hosts.now
            beat(job, number, ended)
            hosts.lives = False
        seen = {}
        for hosts.at in "ab":
            seen[hosts.at] = watches[hosts.at].look().state
        hosts.at = "a"
        silent = hosts.now - changed
        if ended:
            assert set(seen.values()) == {SinkState.STOPPED}, f"seed {seed}"
        elif not hosts.lives:
            assert seen["a"] is SinkState.LOST, f"seed {seed}"
            assert (seen["b"] is SinkState.LOST) == (silent > STALE), f"seed {seed}"
        else:
            wanted = SinkState.STOPPING if job.stop_path.exists() else SinkState.RUNNING
            assert set(seen.values()) == {SinkState.LOST if silent > STALE else wanted}, f"seed {seed}"


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare of util-linux")
def test_a_process_in_another_namespace_of_pids_sees_that_a_job_is_elsewhere(tmp_path: Path) -> None:
    job = open_job_directory(tmp_path / "db.t")
    here = {"pid": os.getpid(), "started": sink_job._started(os.getpid()), "place": sink_job._place()}
    write_private(job.directory / "process.json", json.dumps(here))
    beat(job, 1)
    program = (
        "import sys; from pathlib import Path; from dynamic_table.sinks.sink_job import SinkJob; "
        "job = SinkJob(Path(sys.argv[1])); print(job.is_here, job.report().state)"
    )
    command = ["unshare", "--fork", "--pid", "--mount-proc", sys.executable, "-c", program, str(job.directory)]

    seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if "Operation not permitted" in seen.stderr:
        pytest.skip("this user may not create a namespace of pids")

    assert seen.stdout.split() == ["False", "running"], seen.stderr
    assert (job.is_here, job.report().state) == (True, SinkState.RUNNING)
