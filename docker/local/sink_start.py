"""Tell which step of its start a sink has reached, from the state of its run in Airflow and the job's heartbeat."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from demo_settings import DemoError
from dynamic_table.sinks.sink_job import SinkJob, SinkState

__all__ = ["SinkStart"]

_CHECK_SECONDS = 2.0


class SinkStart:
    """The start of the only job below ``jobs``. ``run_state`` asks Airflow, which takes it a while."""

    def __init__(self, jobs: Path, run_state: Callable[[], str]) -> None:
        self._jobs = jobs
        self._run_state = run_state
        self._state = "queued"
        self._next_check = 0.0

    def check(self) -> None:
        """Raise ``DemoError`` if the run has failed; asks Airflow every two seconds only."""
        if time.monotonic() < self._next_check:
            return
        self._state = self._run_state()
        self._next_check = time.monotonic() + _CHECK_SECONDS
        if self._state == "failed":
            message = f"the sink failed; see {self._jobs.parent}/airflow/logs and the job's log.txt"
            raise DemoError(message)

    def waits_for(self) -> str:
        """Return the step that has to end next."""
        directory = max(self._jobs.glob("*/job-*"), default=None)
        if directory is None:
            return f"Airflow starts the task (its run is {self._state})"
        report = SinkJob(directory).report()
        if report.state is SinkState.STARTING:
            return "Spark starts"
        if report.heartbeat.get("batch_id") is None:
            return "Spark plans and runs the first micro-batch"
        return "the first micro-batch is written"
