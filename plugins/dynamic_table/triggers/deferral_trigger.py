"""Base of the triggers that operators and sensors defer to: none of them resumes its task too soon.

A task that defers ends its process, and its executor reports that as a success. Airflow tells this success from one of
the resumed task by the state that the task has when the scheduler processes the report. A trigger that fires earlier
makes the task queued again by then, and Airflow fails it: "finished with state success, but the task instance's state
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
"""The default; a scheduler processes the reports of its executors once a loop, which takes about a second."""


class DeferralTrigger(BaseTrigger):
    """Fires once, with what ``wait`` returns, and not before the scheduler has seen that the task is deferred."""

    @abstractmethod
    async def wait(self) -> dict[str, Any]:
        """Return the payload of the event as soon as there is one."""

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait for the payload, and for the rest of the minimum time."""
        earliest = time.monotonic() + _deferral_seconds_min()
        payload = await self.wait()
        await asyncio.sleep(max(0.0, earliest - time.monotonic()))
        yield TriggerEvent(payload)  # type: ignore[no-untyped-call]  # Airflow's


def _deferral_seconds_min() -> float:
    return max(0.0, conf.getfloat("dynamic_table", "deferral_seconds_min", fallback=DEFERRAL_SECONDS_MIN))
