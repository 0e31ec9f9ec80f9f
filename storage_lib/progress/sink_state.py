"""State of a process that writes tables on its own, as its heartbeat tells it."""

from __future__ import annotations

from enum import StrEnum


class SinkState(StrEnum):
    """State of a sink or a refresher; the last two are final."""

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    STOPPED = "STOPPED"
    FAILED = "FAILED"

    @property
    def is_final(self) -> bool:
        """Whether the process has ended, or is about to."""
        return self in (SinkState.STOPPED, SinkState.FAILED)
