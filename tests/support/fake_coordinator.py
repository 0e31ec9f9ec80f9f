"""Transaction coordinator whose responses fail on request; replaces ``KafkaCluster``.

It keeps one epoch and one state per transactional id, as Kafka does, and takes the next of ``mishaps`` per request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import kafka.errors

from storage_lib.log_store.kafka.kafka_cluster import Retries
from tests.support.fake_environment import FakeClock

FINE = "fine"
ANSWER_LOST = "done, but the connection was closed before the answer"


class FakeCoordinator:
    """One broker that coordinates every transactional id."""

    def __init__(self, mishaps: Iterable[str | type[Exception]] = (), *, limit_ms: int = 30_000) -> None:
        self.mishaps = list(mishaps)
        self.limit_ms = limit_ms
        self.epochs: dict[str, int] = {}
        self.states: dict[str, str] = {}
        self.markers_missing = 0
        self.lookups = 0

    def retries(self, clock: FakeClock, act: str) -> Retries:
        deadline = clock.monotonic() + self.limit_ms / 1_000
        return Retries(clock=clock, deadline=deadline, servers="fake:9092", act=act, limit_ms=self.limit_ms)

    def coordinators(self, transactional_ids: Sequence[str], _retries: Retries) -> dict[str, int]:
        return dict.fromkeys(transactional_ids, 1)

    def forget_coordinator(self, _transactional_id: str) -> None:
        self.lookups += 1

    def ask(self, _node: int | None, request: Any) -> Any:
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask_all(self, requests: Iterable[tuple[int | None, Any]]) -> list[Any]:
        return [self._answer(request) for _, request in requests]

    def _answer(self, request: Any) -> Any:
        mishap = self.mishaps.pop(0) if self.mishaps else FINE
        if isinstance(mishap, type):
            code = getattr(mishap, "errno", None)
            return mishap() if code is None else self._refusal(request, code)
        answer = getattr(self, "_" + type(request).__name__)(request)
        return kafka.errors.KafkaConnectionError("closed") if mishap == ANSWER_LOST else answer

    def _refusal(self, request: Any, code: int) -> SimpleNamespace:
        if type(request).__name__ == "AddPartitionsToTxnRequest":
            return _joined(code)
        return SimpleNamespace(error_code=code)

    def _InitProducerIdRequest(self, request: Any) -> SimpleNamespace:  # noqa: N802  named like the request
        name = request.transactional_id
        self.epochs[name] = self.epochs.get(name, -1) + 1
        self.states[name] = "Empty"
        return SimpleNamespace(error_code=0, producer_id=5, producer_epoch=self.epochs[name])

    def _AddPartitionsToTxnRequest(self, request: Any) -> SimpleNamespace:  # noqa: N802
        name = request.v3_and_below_transactional_id
        if request.v3_and_below_producer_epoch != self.epochs[name]:
            return _joined(kafka.errors.ProducerFencedError.errno)
        self.states[name] = "Ongoing"
        return _joined(0)

    def _EndTxnRequest(self, request: Any) -> SimpleNamespace:  # noqa: N802
        name = request.transactional_id
        wanted = "CompleteCommit" if request.committed else "CompleteAbort"
        if request.producer_epoch != self.epochs.get(name):
            return SimpleNamespace(error_code=kafka.errors.ProducerFencedError.errno)
        if self.states[name] == "Ongoing":
            self.states[name] = wanted
            return SimpleNamespace(error_code=0)
        if self.states[name] == wanted and self.markers_missing:
            self.markers_missing -= 1
            return SimpleNamespace(error_code=kafka.errors.ConcurrentTransactionsError.errno)
        is_done = self.states[name] == wanted
        return SimpleNamespace(error_code=0 if is_done else kafka.errors.InvalidTxnStateError.errno)

    def _DescribeTransactionsRequest(self, request: Any) -> SimpleNamespace:  # noqa: N802
        (name,) = request.transactional_ids
        state = SimpleNamespace(
            error_code=0, producer_id=5, producer_epoch=self.epochs[name], transaction_state=self.states[name]
        )
        return SimpleNamespace(transaction_states=[state])


def _joined(code: int) -> SimpleNamespace:
    partition = SimpleNamespace(partition_error_code=code)
    topic = SimpleNamespace(results_by_partition=[partition])
    return SimpleNamespace(results_by_topic_v3_and_below=[topic])
