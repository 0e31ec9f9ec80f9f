"""Reaction of a stream's compaction to a failed round, without a stream."""

from __future__ import annotations

from typing import Any

import pytest

from storage_lib import CorruptFileError
from storage_lib.spark.compaction import stream_compaction
from storage_lib.spark.compaction.stream_compaction import StreamCompaction


class Rounds:
    """Replaces ``compact_if_due``: each call takes the next outcome and records the value of ``error``."""

    def __init__(self, *outcomes: object) -> None:
        self.outcomes = list(outcomes)
        self.errors_seen: list[Exception | None] = []
        self.compaction: StreamCompaction | None = None

    def __call__(self, *_: Any) -> object:
        assert self.compaction is not None
        self.errors_seen.append(self.compaction.error)
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def are_over(self) -> bool:
        return not self.outcomes


def test_a_round_that_fails_is_told_and_the_next_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    failure = CorruptFileError("a file is broken")
    rounds = Rounds("a snapshot", failure, "a snapshot", None)
    monkeypatch.setattr(stream_compaction, "compact_if_due", rounds)
    nothing: Any = None
    compaction: Any = StreamCompaction(nothing, nothing, interval_seconds=0.001)
    rounds.compaction = compaction

    compaction.start(until=lambda: rounds.are_over)
    compaction._thread.join(120)

    assert rounds.errors_seen == [None, None, failure, None]
    assert compaction.snapshot_count == 2
    assert compaction.error is None
