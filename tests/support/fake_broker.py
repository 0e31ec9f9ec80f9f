"""Kafka partition that checks sequence numbers as a broker does, and whose responses fail on request.

Replaces ``KafkaCluster`` for ``KafkaBucketWriter``: each produce request takes the next of ``mishaps``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import kafka.errors

from storage_lib.log_store.kafka.kafka_cluster import Retries
from tests.support.fake_environment import FakeClock

_SEQUENCE_AT, _COUNT_AT = 53, 57
FINE = "fine"
REFUSED = "refused: no leader here"
UNSENT = "the connection was closed before"
ANSWER_LOST = "stored, but the connection was closed before the answer"


class FakeBroker:
    """One partition on one broker. ``stored`` holds (first sequence, count) of its batches in order."""

    def __init__(self, mishaps: Iterable[str | type[Exception]] = (), *, limit_ms: int = 30_000) -> None:
        self.mishaps = list(mishaps)
        self.limit_ms = limit_ms
        self.stored: list[tuple[int, int]] = []
        self.requests: list[int] = []
        self.leader_lookups = 0

    def retries(self, clock: FakeClock, act: str) -> Retries:
        deadline = clock.monotonic() + self.limit_ms / 1_000
        return Retries(clock=clock, deadline=deadline, servers="fake:9092", act=act, limit_ms=self.limit_ms)

    def leaders(self, _topic: str, _retries: Retries) -> Mapping[int, int]:
        return {0: 1}

    def forget_leaders(self, _topic: str) -> None:
        self.leader_lookups += 1

    def submit(self, _node: int | None, request: Any) -> Future[Any]:
        batch = request.topic_data[0].partition_data[0].records
        (sequence,) = struct.unpack_from(">i", batch, _SEQUENCE_AT)
        (count,) = struct.unpack_from(">i", batch, _COUNT_AT)
        self.requests.append(sequence)
        mishap = self.mishaps.pop(0) if self.mishaps else FINE
        answer: Future[Any] = Future()
        if mishap == UNSENT:
            answer.set_exception(kafka.errors.KafkaConnectionError("closed"))
        elif mishap == REFUSED:
            answer.set_result(_produced(kafka.errors.NotLeaderForPartitionError.errno, -1))
        elif mishap == ANSWER_LOST:
            self._append(sequence, count)
            answer.set_exception(kafka.errors.RequestTimedOutError())
        elif isinstance(mishap, type):
            answer.set_result(_produced(mishap.errno, -1))  # type: ignore[attr-defined]
        else:
            answer.set_result(_produced(*self._append(sequence, count)))
        return answer

    def answer(self, pending: Future[Any]) -> Any:
        return pending.result(timeout=0)

    def _append(self, sequence: int, count: int) -> tuple[int, int]:
        """Store a batch once, in order; return (error code, base offset). The first sequence may be any number."""
        base = 0
        for stored_sequence, stored_count in self.stored:
            if stored_sequence == sequence:
                return 0, base
            base += stored_count
        if self.stored and sequence != self.stored[-1][0] + self.stored[-1][1]:
            return kafka.errors.OutOfOrderSequenceNumberError.errno, -1
        self.stored.append((sequence, count))
        return 0, base


def _produced(code: int, base_offset: int) -> SimpleNamespace:
    partition = SimpleNamespace(error_code=code, base_offset=base_offset)
    return SimpleNamespace(responses=[SimpleNamespace(partition_responses=[partition])])
