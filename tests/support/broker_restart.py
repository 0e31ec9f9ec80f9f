"""Kills a broker that a test has to itself, and starts it again."""

from __future__ import annotations

from local_kafka import LocalKafka, PortInUseError
from tests.support.waiting import wait_until


def kill_and_restart(broker: LocalKafka) -> None:
    """The kernel takes a moment to close a killed process's port."""

    def is_started() -> bool:
        try:
            broker.start()
        except PortInUseError:
            return False
        return True

    broker.kill()
    wait_until(is_started)
