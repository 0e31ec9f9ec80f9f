"""Waits for a streaming sink without holding a worker slot, and stops it when a person ends its task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from dynamic_table.sink_job import BY_HAND, SinkJob, SinkWatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["StreamSinkTrigger"]


class StreamSinkTrigger(BaseTrigger):
    """Fires once, when the job has ended or is lost.

    :param directory: the job's directory.
    :param poll_seconds: how often to look.
    :param stale_seconds: how long a heartbeat may stand still.
    """

    def __init__(self, *, directory: str, poll_seconds: float, stale_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.directory = directory
        self.poll_seconds = poll_seconds
        self.stale_seconds = stale_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return what builds this trigger again."""
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {"directory": self.directory, "poll_seconds": self.poll_seconds, "stale_seconds": self.stale_seconds},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look until the job has ended."""
        watch = SinkWatch(SinkJob(Path(self.directory)), stale_seconds=self.stale_seconds)
        report = await asyncio.to_thread(watch.look)
        while not report.state.is_ended:
            await asyncio.sleep(self.poll_seconds)
            report = await asyncio.to_thread(watch.look)
        yield TriggerEvent({"directory": self.directory, "state": report.state.value})  # type: ignore[no-untyped-call]  # Airflow's

    async def on_kill(self) -> None:
        """Stop the job cleanly: somebody marked the task or cleared it; a restarted triggerer does not come here."""
        await asyncio.to_thread(SinkJob(Path(self.directory)).request_stop, BY_HAND)
