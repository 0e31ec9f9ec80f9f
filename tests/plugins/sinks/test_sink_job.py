"""A real detached process, monitored through its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dynamic_table.sinks import sink_job
from dynamic_table.sinks.sink_job import SinkJob, SinkState, SinkWatch, newest_job, open_job_directory
from tests.support import light_sink
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIGHT_SINK = (sys.executable, str(Path(light_sink.__file__)))


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., SinkJob]]:
    """Return a function that starts a light sink with the given behaviour; all are killed at the end."""
    jobs: list[SinkJob] = []

    def start(**manners: str) -> SinkJob:
        job = open_job_directory(tmp_path / "db.t")
        jobs.append(job)
        spec = {"heartbeat_path": str(job.heartbeat_path), "stop_path": str(job.stop_path), "write_options": manners}
        job.launch(LIGHT_SINK, json.dumps(spec), environment={"SECRET": "sesame"})
        return job

    yield start
    for job in jobs:
        job.kill()


def pid_of(job: SinkJob) -> int:
    return int(json.loads((job.directory / "process.json").read_text())["pid"])


def test_a_job_starts_runs_and_stops_cleanly_when_asked(launch: Callable[..., SinkJob]) -> None:
    job = launch()
    assert job.report().state.is_active
    wait_until(lambda: job.report().state is SinkState.RUNNING)

    job.request_stop("enough")

    assert job.report().state in (SinkState.STOPPING, SinkState.STOPPED)
    wait_until(lambda: job.report().state is SinkState.STOPPED)
    assert job.stop_path.read_text() == "enough"


def test_a_job_that_has_not_seen_the_file_yet_is_woken_by_a_signal(launch: Callable[..., SinkJob]) -> None:
    job = launch(blind="yes")
    wait_until(lambda: job.report().state is SinkState.RUNNING)

    job.request_stop("enough")

    wait_until(lambda: job.report().state is SinkState.STOPPED)


def test_a_job_has_its_own_session_and_nothing_of_airflow(
    launch: Callable[..., SinkJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SECRET", "must not reach the job")

    job = launch()
    pid = pid_of(job)
    # During its exec a process has no environment to read.
    wait_until(lambda: job.report().state is SinkState.RUNNING)

    assert os.getsid(pid) == pid
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"AIRFLOW" not in environment
    assert b"SECRET=sesame" in environment


def test_a_killed_job_is_lost(launch: Callable[..., SinkJob]) -> None:
    job = launch()
    wait_until(lambda: job.report().state is SinkState.RUNNING)

    os.kill(pid_of(job), signal.SIGKILL)

    wait_until(lambda: job.report().state is SinkState.LOST)


def test_a_job_whose_heartbeat_stands_still_is_lost(launch: Callable[..., SinkJob]) -> None:
    job = launch(silent="yes")
    wait_until(lambda: job.report().state is SinkState.RUNNING)

    watch = SinkWatch(job, stale_seconds=0.2, grace_seconds=60)

    assert watch.look().state is SinkState.RUNNING
    wait_until(lambda: watch.look().state is SinkState.LOST)
    assert job.report().state is SinkState.RUNNING


def test_a_failed_job_tells_its_error(launch: Callable[..., SinkJob]) -> None:
    job = launch(end="FAILED", error="InvalidInputError: no such column")

    wait_until(lambda: job.report().state is SinkState.FAILED)

    assert job.report().heartbeat["error"] == "InvalidInputError: no such column"


def test_a_pid_that_now_belongs_to_another_process_is_not_the_job(launch: Callable[..., SinkJob]) -> None:
    job = launch()
    known = json.loads((job.directory / "process.json").read_text())
    job.kill()
    (job.directory / "process.json").write_text(json.dumps({"pid": os.getpid(), "started": known["started"]}))

    assert job.report().state is SinkState.LOST
    job.kill()


def test_killing_a_job_ends_its_children_too(tmp_path: Path) -> None:
    """A sink's JVM is a child of its Python process."""
    job = open_job_directory(tmp_path / "db.t")
    program = "import subprocess; child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
    job.launch((sys.executable, "-c", program), "{}", environment={})
    wait_until(lambda: job.log_tail().strip())
    child = Path(f"/proc/{job.log_tail().strip()}/stat")
    assert child.exists()

    job.kill()

    wait_until(lambda: not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_heartbeat_that_is_not_whole_is_none(tmp_path: Path) -> None:
    job = open_job_directory(tmp_path / "db.t")
    job.heartbeat_path.write_text('{"state": "RUNN')

    assert job.report().heartbeat == {}


def test_of_two_who_open_a_job_at_once_one_takes_the_next_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_job_directory(tmp_path / "db.t")
    monkeypatch.setattr("dynamic_table.sinks.sink_job.newest_job", lambda _directory: None)

    second = open_job_directory(tmp_path / "db.t")

    assert (first.directory.name, second.directory.name) == ("job-0001", "job-0002")


def test_jobs_of_a_table_are_numbered(tmp_path: Path) -> None:
    assert newest_job(tmp_path / "db.t") is None

    names = [open_job_directory(tmp_path / "db.t").directory.name for _ in range(3)]

    assert names == ["job-0001", "job-0002", "job-0003"]
    found = newest_job(tmp_path / "db.t")
    assert found is not None
    assert found.directory.name == "job-0003"


def test_the_newest_job_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    for name in ("job-9999", "job-10000", "job-0001.kept"):
        (tmp_path / name).mkdir()

    newest = newest_job(tmp_path)

    assert newest == SinkJob(tmp_path / "job-10000")
    assert open_job_directory(tmp_path).directory.name == "job-10001"


def test_only_the_newest_jobs_are_kept_and_those_that_run(
    launch: Callable[..., SinkJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_job, "JOBS_KEPT", 2)
    running = launch()
    table = running.directory.parent

    for _ in range(3):
        open_job_directory(table)

    assert sorted(path.name for path in table.glob("job-*")) == ["job-0001", "job-0003", "job-0004"]
    assert newest_job(table) == SinkJob(table / "job-0004")


def test_a_job_whose_starter_is_killed_before_anybody_can_find_it_ends_by_itself(tmp_path: Path) -> None:
    """Otherwise an untracked job would keep writing in parallel with that of the next try."""
    job = open_job_directory(tmp_path / "db.t")
    starter = f"""
import os, signal
from pathlib import Path
from dynamic_table.sinks import sink_job
sink_job._started = lambda pid: os.kill(os.getpid(), signal.SIGKILL)  # asked for what process.json holds
sink_job.SinkJob(Path({str(job.directory)!r})).launch(["sh", "-c", "echo begun; sleep 60"], "{{}}", environment={{}})
"""

    ended = subprocess.run([sys.executable, "-c", starter], check=False).returncode

    assert ended == -signal.SIGKILL
    assert job.report().state is SinkState.LOST
    wait_until(lambda: not processes_in(job.directory))
    assert job.log_tail() == ""


def processes_in(directory: Path) -> list[str]:
    """Return the processes whose working directory is this one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended in the meantime, or belongs to another user
            found += [path.parent.name] if path.readlink() == directory else []
    return found
