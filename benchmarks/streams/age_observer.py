"""Consumer (librdkafka) that records the age of rows at the time when it reads them."""

from __future__ import annotations

import json
import threading
import time
from types import TracebackType
from typing import Self

import numpy as np
from confluent_kafka import Consumer, TopicPartition

from benchmarks.streams.generator import BIRTH

__all__ = ["AgeObserver", "Ages"]

_AT_ONCE = 5_000
_WAIT_SECONDS = 0.05
_MILLION = 1e6


class Ages:
    """Ages in seconds of the rows read in a period, from a row's creation to its reader."""

    def __init__(self, seconds: list[float], rows: int) -> None:
        self.seconds = seconds
        self.rows = rows

    def percentile(self, percent: float) -> float:
        """Return a percentile in seconds; NaN if no row was read."""
        return float(np.percentile(self.seconds, percent)) if self.seconds else float("nan")


class AgeObserver:
    """Reads and follows a debezium-json topic, committed records only; decodes every ``every``-th record."""

    def __init__(self, servers: str, topic: str, partitions: int, *, every: int = 1) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": topic,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
            }
        )
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._every = every
        self._seen: list[tuple[float, float]] = []
        self._rows: list[tuple[float, int]] = []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._observe, name="age-observer", daemon=True)

    def __enter__(self) -> Self:
        """Start reading."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop reading and close the consumer."""
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    @property
    def row_count(self) -> int:
        """Number of rows read so far."""
        return sum(count for _, count in list(self._rows))

    def ages(self, since: float, until: float | None = None) -> Ages:
        """Return the ages of the rows read from ``since`` to ``until`` (default: now), in epoch seconds."""
        last = time.time() if until is None else until
        rows = sum(count for at, count in list(self._rows) if since <= at <= last)
        return Ages([age for at, age in list(self._seen) if since <= at <= last], rows)

    def _observe(self) -> None:
        while not self._ends.is_set():
            # `consume` alone returns only when the batch is full or its timeout has passed; `poll` returns at once.
            first = self._consumer.poll(_WAIT_SECONDS)
            messages = [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]
            now = time.time()
            good = [message for message in messages if not message.error()]
            if good:
                self._rows.append((now, len(good)))
            for message in good:
                if (message.offset() or 0) % self._every == 0:
                    after = json.loads(message.value() or b"")["after"]
                    self._seen.append((now, now - after[BIRTH] / _MILLION))
