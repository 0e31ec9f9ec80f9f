"""Kill and restart the private broker of a test."""

from __future__ import annotations

from local_kafka import LocalKafka, PortInUseError
from tests.support.waiting import wait_until


def kill_and_restart(broker: LocalKafka) -> None:
    """Kill the broker and start it again; retries because the kernel takes a moment to free a killed process's port."""

    def is_started() -> bool:
        try:
            broker.start()
        except PortInUseError:
            return False
        return True

    broker.kill()
    wait_until(is_started)
