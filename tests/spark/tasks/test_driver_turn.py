"""The driver's thread that shows a turn to be alive while Spark plans and runs the tasks."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from storage_lib.spark.tasks.driver_turn import keep_alive

OURS = 7


@dataclass
class Lease:
    """Is over, or somebody else's, once it was asked so many times."""

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

    def beat(self, turn: Any) -> None:
        assert turn.number == OURS
        self.beats += 1


def test_a_turn_is_beaten_for_until_it_was_given_back() -> None:
    assert _beats_until("given back") == 3


def test_nobody_beats_for_a_turn_that_was_taken_over() -> None:
    assert _beats_until("taken over") == 3


def _beats_until(end: str) -> int:
    lease = Lease(asked=["ours", "ours", "ours", end])
    table: Any = SimpleNamespace(
        new_write=lambda: SimpleNamespace(lease=lease),
        options=SimpleNamespace(lease_timeout_ms=60, lease_wait_timeout_ms=600_000),
    )
    turn: Any = SimpleNamespace(number=OURS)

    keep_alive(table, turn)

    assert lease.ended.wait(120)
    for thread in threading.enumerate():
        if thread.name == f"turn-{OURS}":
            thread.join(120)
    return lease.beats
