"""Base of the triggers that operators and sensors defer to; keeps a task from resuming too soon.

A task that defers ends its process, and its executor reports that as a success. Airflow distinguishes this success from
one of the resumed task by the task's state when the scheduler processes the report. If the trigger fires earlier, the
task is queued again by then, and Airflow fails it: "finished with state success, but the task instance's state
attribute is queued". So the first event waits for ``[dynamic_table] deferral_seconds_min`` after the trigger started.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from airflow.configuration import conf
from airflow.triggers.base import BaseTrigger, TriggerEvent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["DEFERRAL_SECONDS_MIN", "DeferralTrigger"]

DEFERRAL_SECONDS_MIN = 5.0
"""Default in seconds; a scheduler processes its executors' reports once per loop, which takes about a second."""


class DeferralTrigger(BaseTrigger):
    """Fires once, with the result of ``wait``, but not before the scheduler has processed the deferral."""

    @abstractmethod
    async def wait(self) -> dict[str, Any]:
        """Wait for the event and return its payload."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield the event once the payload is there and the minimum time has passed."""
        earliest = time.monotonic() + _deferral_seconds_min()
        payload = await self.wait()
        await asyncio.sleep(max(0.0, earliest - time.monotonic()))
        yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's


def _deferral_seconds_min() -> float:
    return max(0.0, conf.getfloat("dynamic_table", "deferral_seconds_min", fallback=DEFERRAL_SECONDS_MIN))
