"""Acts at the k-th request that this process sends to the brokers: before it is sent, or after its response.

with request_trap(at=3, moment=Moment.ANSWERED, act=broker.kill) as sent:
    table.append(rows)
sent                                           the kinds of requests, in order
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import kafka.errors

from storage_lib.log_store.kafka.kafka_cluster import KafkaCluster


class Moment(StrEnum):
    """Moment of the trap, and the response that the process receives."""

    UNSENT = "before it is sent"
    ANSWERED = "when it was answered"
    LOST = "answered, but the answer is lost"
    REFUSED = "not sent, for the connection is lost"


@contextmanager
def request_trap(
    *, at: int | str | None, moment: Moment, act: Callable[[], object] = lambda: None
) -> Iterator[list[str]]:
    """Trap requests while the body runs; ``at`` counts from 1, or is a kind whose first request is meant.

    None only counts. The count of a kind differs between two equal commits: a transaction that takes too long is
    repeated, and an answer of "not yet" is asked for again.
    """
    sent: list[str] = []
    submit = KafkaCluster.submit

    def trapped(cluster: KafkaCluster, node: int | None, request: object) -> Future[Any]:
        sent.append(type(request).__name__)
        if at not in (len(sent), sent[-1]) or at in sent[:-1]:
            return submit(cluster, node, request)
        if moment is Moment.UNSENT:
            act()
        if moment is Moment.REFUSED:
            return _no_answer()
        pending = submit(cluster, node, request)
        if moment is Moment.UNSENT:
            return pending
        wait([pending])
        act()
        return _no_answer() if moment is Moment.LOST else pending

    KafkaCluster.submit = trapped  # type: ignore[assignment, method-assign]
    try:
        yield sent
    finally:
        KafkaCluster.submit = submit  # type: ignore[method-assign]


def _no_answer() -> Future[Any]:
    lost: Future[Any] = Future()
    lost.set_exception(kafka.errors.KafkaConnectionError("simulated"))
    return lost
