"""Consumer (librdkafka) that records the age of rows at the time when it reads them."""

from __future__ import annotations

import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from benchmarks.streams.generator import BIRTH

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

__all__ = ["AgeObserver", "Ages"]

_AT_ONCE = 5_000
_WAIT_SECONDS = 0.05
_MILLION = 1e6
_SHOW = "show"
_END = "end"


class Ages:
    """Ages of the rows read in a period, from a row's creation to its reader.

    ``seen`` has the time at which a row was read and its age, both in seconds; ``rows`` counts also those that were not
    decoded.
    """

    def __init__(self, seen: list[tuple[float, float]], rows: int) -> None:
        self.seen = seen
        self.seconds = [age for _, age in seen]
        self.rows = rows

    def percentile(self, percent: float) -> float:
        """Return a percentile in seconds; NaN if no row was read."""
        return float(np.percentile(self.seconds, percent)) if self.seconds else float("nan")


class AgeObserver:
    """Reads and follows a debezium-json topic, committed records only; decodes every ``every``-th record.

    It reads in a process of its own: with a writer in the same process, ages would contain its waits for the lock of
    the interpreter.
    """

    def __init__(self, servers: str, topic: str, partitions: int, *, every: int = 1) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._row_count = spawned.Value("q", 0)
        self._ours, theirs = spawned.Pipe()
        arguments = (servers, topic, partitions, every, self._row_count, theirs)
        self._process = spawned.Process(target=_observe, args=arguments, name="age-observer", daemon=True)

    def __enter__(self) -> Self:
        """Start reading."""
        self._process.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading and close the consumer."""
        self._ours.send(_END)
        self._process.join()

    @property
    def row_count(self) -> int:
        """Number of rows read so far."""
        return int(self._row_count.value)

    def ages(self, since: float, until: float | None = None) -> Ages:
        """Return the ages of the rows read from ``since`` to ``until`` (default: now), in epoch seconds."""
        last = time.time() if until is None else until
        self._ours.send(_SHOW)
        seen, rows = self._ours.recv()
        return Ages(
            [(at, age) for at, age in seen if since <= at <= last], sum(n for at, n in rows if since <= at <= last)
        )


def _observe(
    servers: str, topic: str, partitions: int, every: int, row_count: Synchronized[int], asked: Connection
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    seen: list[tuple[float, float]] = []
    rows: list[tuple[float, int]] = []
    while True:
        if asked.poll():
            if asked.recv() == _END:
                break
            asked.send((seen, rows))
        # `consume` alone returns only when the batch is full or its timeout has passed; `poll` returns at once.
        first = consumer.poll(_WAIT_SECONDS)
        messages = [] if first is None else [first, *consumer.consume(_AT_ONCE, 0)]
        now = time.time()
        good = [message for message in messages if not message.error()]
        if good:
            rows.append((now, len(good)))
            row_count.value += len(good)
        for message in good:
            if (message.offset() or 0) % every == 0:
                after = json.loads(message.value() or b"")["after"]
                seen.append((now, now - after[BIRTH] / _MILLION))
    consumer.close()
