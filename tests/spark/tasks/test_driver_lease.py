"""The driver's thread that renews a lease while Spark plans and runs the tasks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from storage_lib.spark.tasks.driver_lease import keep_alive

OURS = 7


@dataclass
class Lease:
    """Leases that end as given in ``asked``, one answer per call of ``newest``."""

    asked: list[str]
    beats: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def newest(self) -> int:
        answer = self.asked.pop(0)
        if answer != "ours":
            self.ended.set()
        return OURS + 1 if answer == "taken over" else OURS

    def holder(self) -> str | None:
        return None if self.ended.is_set() else "query/1"

    def beat(self, lease: Any) -> None:
        assert lease.number == OURS
        self.beats += 1


def test_a_lease_is_renewed_until_it_is_released() -> None:
    assert _beats_until("given back") == 3


def test_a_lease_that_was_taken_over_is_not_renewed() -> None:
    assert _beats_until("taken over") == 3


def _beats_until(end: str) -> int:
    leases = Lease(asked=["ours", "ours", "ours", end])
    table: Any = SimpleNamespace(
        new_write=lambda: SimpleNamespace(leases=leases),
        options=SimpleNamespace(lease_timeout_ms=60, lease_wait_timeout_ms=600_000),
    )
    lease: Any = SimpleNamespace(number=OURS)

    keep_alive(table, lease)

    assert leases.ended.wait(120)
    for thread in threading.enumerate():
        if thread.name == f"lease-{OURS}":
            thread.join(120)
    return leases.beats
