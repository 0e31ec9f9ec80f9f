"""Leader of one Kafka partition that answers requests about producers; replaces ``KafkaCluster``.

``open_since`` maps each producer id to the first offset of its open transaction (-1: none). Each response to
``WriteTxnMarkers`` takes the next of ``mishaps``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import kafka.errors

from storage_lib.log_store.kafka.kafka_cluster import Retries
from tests.support.fake_environment import FakeClock


class FakeLeader:
    """Leader of one partition; ``aborted`` lists the producers whose transactions were aborted, in order."""

    def __init__(self, open_since: Mapping[int, int], mishaps: Iterable[type[Exception]] = ()) -> None:
        self.open_since = dict(open_since)
        self.mishaps = list(mishaps)
        self.aborted: list[int] = []
        self.leader_lookups = 0

    def retries(self, clock: FakeClock, act: str) -> Retries:
        deadline = clock.monotonic() + 30
        return Retries(clock=clock, deadline=deadline, servers="fake:9092", act=act, limit_ms=30_000)

    def leaders(self, _topic: str, _retries: Retries) -> Mapping[int, int]:
        return {0: 1}

    def forget_leaders(self, _topic: str) -> None:
        self.leader_lookups += 1

    def submit(self, _node: int | None, request: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        try:
            answer.set_result(getattr(self, "_" + type(request).__name__)(request))
        except kafka.errors.KafkaError as error:
            answer.set_exception(error)
        return answer

    def answer(self, pending: Future[Any]) -> Any:
        return pending.result(timeout=0)

    def _DescribeProducersRequest(self, _request: Any) -> SimpleNamespace:  # noqa: N802  named like the request
        producers = [
            SimpleNamespace(producer_id=each, producer_epoch=3, coordinator_epoch=7, current_txn_start_offset=since)
            for each, since in self.open_since.items()
        ]
        partition = SimpleNamespace(error_code=0, active_producers=producers)
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])])

    def _WriteTxnMarkersRequest(self, request: Any) -> SimpleNamespace:  # noqa: N802
        (marker,) = request.markers
        code = self.mishaps.pop(0).errno if self.mishaps else 0  # type: ignore[attr-defined]
        if not code:
            assert (marker.producer_epoch, marker.coordinator_epoch, marker.transaction_result) == (3, 7, False)
            self.open_since[marker.producer_id] = -1
            self.aborted.append(marker.producer_id)
        partition = SimpleNamespace(error_code=code)
        return SimpleNamespace(markers=[SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])])])
