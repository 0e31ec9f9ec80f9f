"""Waits for a streaming sink without holding a worker slot, and stops it when a person ends its task."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from dynamic_table.sinks.sink_job import BY_HAND, SinkJob, SinkWatch
from dynamic_table.triggers.deferral_trigger import DeferralTrigger

__all__ = ["RELEASED", "REPORT_DUE", "StreamSinkTrigger"]

# Beside the states in which a job ends.
REPORT_DUE = "report due"
RELEASED = "released"


class StreamSinkTrigger(DeferralTrigger):
    """Fires once: when the job has ended or is lost, when a report is due, or when the job is somebody else's to watch.

    :param directory: the job's directory.
    :param poll_seconds: how often to look.
    :param stale_seconds: how long a heartbeat may stand still.
    :param report_seconds: fire after so long in any case; None: never.
    :param release_path: a file whose existence says that another task watches the job from now on.
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
        """Return what builds this trigger again."""
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
        """Look until there is something to tell."""
        watch = SinkWatch(SinkJob(Path(self.directory)), stale_seconds=self.stale_seconds)
        began = time.monotonic()
        told = await asyncio.to_thread(self._look, watch, began)
        while told is None:
            await asyncio.sleep(self.poll_seconds)
            told = await asyncio.to_thread(self._look, watch, began)
        return {"directory": self.directory, "state": told}

    def _look(self, watch: SinkWatch, began: float) -> str | None:
        state = watch.look().state
        if state.is_ended:
            return state.value
        if self.release_path and Path(self.release_path).exists():
            return RELEASED
        is_due = self.report_seconds is not None and time.monotonic() - began >= self.report_seconds
        return REPORT_DUE if is_due else None

    async def on_kill(self) -> None:
        """Stop the job cleanly: somebody marked the task or cleared it; a restarted triggerer does not come here."""
        await asyncio.to_thread(SinkJob(Path(self.directory)).request_stop, BY_HAND)
