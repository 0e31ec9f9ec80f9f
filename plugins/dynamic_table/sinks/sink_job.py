"""A streaming sink as a separate process, which a task starts and monitors through files, and which outlives the task.

    <jobs>/<table>/sources/<source>/checkpoint/   Spark's, shared by all jobs with that source: each resumes the last
    <jobs>/<table>/start.lock         held by the task that starts a job
    <jobs>/<table>/job-0001/          one job
        owner                         the task of a DAG run that owns the job
        task.json                     the task that monitors the job now, for links
        spec.json                     the job's specification; secrets are in its environment
        process.json                  its pid and the process's start time, since pids are reused; and where pids count
        heartbeat.json                the job's own report, replaced atomically
        stop                          requests a clean end; contains the reason
        lost                          the last heartbeat of a job on another host that was given up
        log.txt                       its output

A pid says whether a process lives only where it was started: on another host, or in another container, a job lives as
long as its heartbeat changes. A job that was given up there is asked to stop, should it come back. It cannot write in
parallel with its successor: both commit under the identity of one checkpoint, and one of them holds the table's lease.

The files and directories are readable by their owner only. Imports neither Airflow nor the library.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamic_table.files.private_files import make_private_directory, open_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "BY_HAND",
    "SINK_JOB_KEY",
    "SUPERSEDED",
    "SinkJob",
    "SinkReport",
    "SinkState",
    "SinkWatch",
    "newest_job",
    "open_job_directory",
    "turn_to_start",
]

JOBS_KEPT = 100
# `exec` keeps the pid. If the starting process is killed before it has stored the pid, "go" never arrives.
WHEN_TOLD = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "sink")
BY_HAND = "a person ended or cleared the task"
SUPERSEDED = "superseded: "  # start of the reason if a task ended the job because it is declared otherwise now
SINK_JOB_KEY = "sink_job"  # key in a task's state store


class SinkState(StrEnum):
    """State of a job. STOPPING is not active: no task may reattach to a job that is about to end.

    CANCELLED means STOPPED because a user ended or cleared the task: if the task runs again, it starts a new job.
    """

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    FAILED = "failed"
    LOST = "lost"

    @property
    def is_active(self) -> bool:
        """Whether the job runs and is not being stopped."""
        return self in (SinkState.STARTING, SinkState.RUNNING)

    @property
    def is_ended(self) -> bool:
        """Whether the job has ended."""
        return not self.is_active and self is not SinkState.STOPPING


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """State of a job at one time; ``heartbeat`` is the job's last report."""

    state: SinkState
    heartbeat: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SinkJob:
    """A job, identified by its directory."""

    directory: Path

    @property
    def spec_path(self) -> Path:
        """The file of the job's specification."""
        return self.directory / "spec.json"

    @property
    def heartbeat_path(self) -> Path:
        """The file of the job's heartbeat."""
        return self.directory / "heartbeat.json"

    @property
    def stop_path(self) -> Path:
        """The file whose existence asks the job to end."""
        return self.directory / "stop"

    @property
    def log_path(self) -> Path:
        """The file of the job's output."""
        return self.directory / "log.txt"

    @property
    def owner(self) -> str:
        """The job's owner; empty if unknown."""
        return _text_of(self.directory / "owner") or ""

    @property
    def is_here(self) -> bool:
        """Whether the job was started where its pid can be seen: on this host, in this container."""
        return self._process().get("place", _place()) == _place()

    @property
    def is_superseded(self) -> bool:
        """Whether the job was stopped for a reason of ours, so that its end says nothing about its task."""
        return (_text_of(self.stop_path) or "").startswith(SUPERSEDED)

    @property
    def task(self) -> dict[str, Any] | None:
        """The task that monitors the job: ``dag_id``, ``run_id``, ``task_id``, ``map_index``; None if unknown."""
        return _json_of(self.directory / "task.json") or None

    def note_task(self, **task: str | int) -> None:
        """Store which task monitors the job."""
        write_private(self.directory / "task.json", json.dumps(task))

    @property
    def _lost_path(self) -> Path:
        return self.directory / "lost"

    @property
    def _process_path(self) -> Path:
        return self.directory / "process.json"

    def spec_text(self) -> str | None:
        """Return the job's specification; None before it is written."""
        return _text_of(self.spec_path)

    def launch(self, command: Sequence[str], spec_json: str, *, environment: Mapping[str, str]) -> None:
        """Start the job detached: own session, its output in its log, ``environment`` instead of Airflow's.

        The job begins only after its pid is stored. If this process crashes before that, the job never begins: the next
        try could not find it and would start a second one in parallel.
        """
        write_private(self.spec_path, spec_json)
        with open_private(self.log_path) as log:
            process = subprocess.Popen(  # noqa: S603  the operator's own command
                [*WHEN_TOLD, *command, "--spec", str(self.spec_path)],
                env={name: value for name, value in os.environ.items() if "AIRFLOW" not in name} | dict(environment),
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # We never wait for this process; without this Python warns that it is still running.
        process.returncode = 0
        known = {"pid": process.pid, "started": _started(process.pid), "place": _place()}
        write_private(self._process_path, json.dumps(known))
        process.communicate(b"go\n")

    def report(self) -> SinkReport:
        """Return the job's state, from its heartbeat and, if it is here, its process.

        A job elsewhere that no longer changes its heartbeat still counts as active: see ``SinkWatch``.
        """
        # Check the process first: a job that writes its last heartbeat and then ends is not lost.
        lives = self._lives() or not self.is_here
        heartbeat = _json_of(self.heartbeat_path)
        reported = SinkState(str(heartbeat.get("state", SinkState.STARTING)).lower())
        if reported is SinkState.STOPPED and _text_of(self.stop_path) == BY_HAND:
            return SinkReport(state=SinkState.CANCELLED, heartbeat=heartbeat)
        if reported.is_ended:
            return SinkReport(state=reported, heartbeat=heartbeat)
        if not lives or (not self.is_here and _text_of(self._lost_path) == json.dumps(heartbeat)):
            return SinkReport(state=SinkState.LOST, heartbeat=heartbeat)
        if self.stop_path.exists():
            return SinkReport(state=SinkState.STOPPING, heartbeat=heartbeat)
        return SinkReport(state=reported, heartbeat=heartbeat)

    def request_stop(self, reason: str) -> None:
        """Ask the job to finish its batch and end. Writes the stop file first, so that no task reattaches."""
        if not self.directory.is_dir():
            return
        write_private(self.stop_path, reason)
        if self._lives():
            with suppress(ProcessLookupError):
                os.kill(self._process()["pid"], signal.SIGTERM)

    def kill(self) -> None:
        """Kill a job that no longer responds; give one up that is elsewhere. Commits are atomic, so no data is lost."""
        if not self.is_here:
            self._give_up()
        elif self._lives():
            with suppress(ProcessLookupError):
                os.killpg(self._process()["pid"], signal.SIGKILL)

    def _give_up(self) -> None:
        """Count the job as lost as long as its heartbeat stays as it is, and ask it to stop if it still runs."""
        if not self.directory.is_dir() or self.report().state.is_ended:
            return
        heartbeat = _json_of(self.heartbeat_path)
        if not self.stop_path.exists():
            write_private(self.stop_path, f"{SUPERSEDED}it did not respond")
        write_private(self._lost_path, json.dumps(heartbeat))

    def log_tail(self, lines: int = 30) -> str:
        """Return the end of the job's output."""
        try:
            return "\n".join(self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

    def _process(self) -> dict[str, Any]:
        return _json_of(self._process_path)

    def _lives(self) -> bool:
        process = self._process()
        return bool(process) and self.is_here and _started(process["pid"]) == process["started"]


class SinkWatch:
    """Polls a job and reports it as lost if its heartbeat does not change for too long.

    Measures time by its own monotonic clock; never compares clocks of two machines. ``grace_seconds`` is the time
    that a job may take until its first heartbeat.
    """

    def __init__(self, job: SinkJob, *, stale_seconds: float, grace_seconds: float = 180) -> None:
        self.job = job
        self._stale_seconds = stale_seconds
        self._grace_seconds = max(grace_seconds, stale_seconds)
        self.has_changed = False
        """Whether the heartbeat has changed between two looks, so that the job lives."""
        self._looks = 0
        self._last_heartbeat: Mapping[str, Any] = {}
        self._last_change = time.monotonic()

    def look(self) -> SinkReport:
        """Return the job's state, LOST if its heartbeat is stale."""
        report = self.job.report()
        now = time.monotonic()
        if report.heartbeat != self._last_heartbeat:
            self.has_changed = self._looks > 0
            self._last_heartbeat, self._last_change = report.heartbeat, now
        self._looks += 1
        limit = self._stale_seconds if self._last_heartbeat else self._grace_seconds
        if not report.state.is_ended and now - self._last_change > limit:
            return SinkReport(state=SinkState.LOST, heartbeat=report.heartbeat)
        return report


def newest_job(table_directory: Path) -> SinkJob | None:
    """Return the newest job of a table; None if it never had one."""
    jobs = _numbered_jobs(table_directory)
    return jobs[max(jobs)] if jobs else None


def open_job_directory(table_directory: Path, *, owner: str = "") -> SinkJob:
    """Create the next job's directory, for ``owner``, and remove old directories of ended jobs.

    Creation is atomic: two concurrent starters get different numbers.
    """
    make_private_directory(table_directory)
    jobs = _numbered_jobs(table_directory)
    number = max(jobs, default=0)
    for old in sorted(jobs)[: -JOBS_KEPT + 1]:
        if jobs[old].report().state.is_ended:
            shutil.rmtree(jobs[old].directory, ignore_errors=True)
    while True:
        number += 1
        job = SinkJob(table_directory / f"job-{number:04d}")
        with suppress(FileExistsError):
            make_private_directory(job.directory, exist_ok=False)
            write_private(job.directory / "owner", owner)
            return job


@contextmanager
def turn_to_start(table_directory: Path) -> Iterator[None]:
    """Hold the lock for finding or starting a table's sink, so that a second task finds the sink of the first."""
    make_private_directory(table_directory)
    lock = os.open(table_directory / "start.lock", os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(lock, "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


def _numbered_jobs(table_directory: Path) -> dict[int, SinkJob]:
    found = {number: path for path in table_directory.glob("job-*") if (number := _number_of(path)) is not None}
    return {number: SinkJob(path) for number, path in found.items()}


def _number_of(directory: Path) -> int | None:
    """Return the number of the job in a directory, None for other names. An integer, to sort beyond job-9999."""
    number = directory.name.removeprefix("job-")
    return int(number) if number.isdecimal() else None


def _text_of(path: Path) -> str | None:
    """Return the file's text; None if it does not exist."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def _json_of(path: Path) -> dict[str, Any]:
    """Return the file's JSON object; empty if the file does not exist or is not a JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _place() -> str:
    """Return the boot and the namespace of pids in which this process runs."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _started(pid: int) -> int:
    """Return the process's start time (ticks since boot); 0 if it does not exist or is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])
