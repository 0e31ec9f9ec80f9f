"""Monitors a streaming sink without holding a worker slot, and stops it when a user ends its task."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from dynamic_table.sinks.sink_job import BY_HAND, SinkJob, SinkWatch
from dynamic_table.triggers.deferral_trigger import DeferralTrigger
from dynamic_table.triggers.own_threads import in_own_thread, looked

__all__ = ["RELEASED", "REPORT_DUE", "StreamSinkTrigger"]

SINKS = "the sinks' directories"

# Further event states, in addition to those in which a job ends.
REPORT_DUE = "report due"
RELEASED = "released"


class StreamSinkTrigger(DeferralTrigger):
    """Fires once: when the job has ended or is lost, when a report is due, or when the job is handed over.

    :param directory: the job's directory.
    :param poll_seconds: seconds between checks.
    :param stale_seconds: age in seconds at which a heartbeat is stale.
    :param report_seconds: seconds after which to fire for a report; None: never.
    :param release_path: a file whose existence hands the job over to another task.
    """

    def __init__(
        self,
        *,
        directory: str,
        poll_seconds: float,
        stale_seconds: float,
        report_seconds: float | None = None,
        release_path: str | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.directory = directory
        self.poll_seconds = poll_seconds
        self.stale_seconds = stale_seconds
        self.report_seconds = report_seconds
        self.release_path = release_path

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and arguments that recreate this trigger."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "directory": self.directory,
                "poll_seconds": self.poll_seconds,
                "stale_seconds": self.stale_seconds,
                "report_seconds": self.report_seconds,
                "release_path": self.release_path,
            },
        )

    async def wait(self) -> dict[str, Any]:
        """Poll until the job ends, is handed over, or a report is due."""
        watch = SinkWatch(SinkJob(Path(self.directory)), stale_seconds=self.stale_seconds)
        began = time.monotonic()
        subject = f"A file of {self.directory}"
        while True:
            outcome = await looked(SINKS, self._look, watch, began, late=None, log=self.log, subject=subject)
            if outcome is not None:
                return {"directory": self.directory, "state": outcome}
            await asyncio.sleep(self.poll_seconds)

    def _look(self, watch: SinkWatch, began: float) -> str | None:
        state = watch.look().state
        if state.is_ended:
            return state.value
        if self.release_path and Path(self.release_path).exists():
            return RELEASED
        is_due = self.report_seconds is not None and time.monotonic() - began >= self.report_seconds
        return REPORT_DUE if is_due else None

    async def on_kill(self) -> None:
        """Stop the job cleanly after a user marked or cleared the task; not called when a triggerer restarts."""
        await in_own_thread(SINKS, SinkJob(Path(self.directory)).request_stop, BY_HAND)
