"""A consumer of another make that notes how old rows are when it has them."""

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
    """Seconds from a row's birth to its reader, of the rows read in a stretch of time."""

    def __init__(self, seconds: list[float], rows: int) -> None:
        self.seconds = seconds
        self.rows = rows

    def percentile(self, percent: float) -> float:
        """In seconds; NaN when nothing came."""
        return float(np.percentile(self.seconds, percent)) if self.seconds else float("nan")


class AgeObserver:
    """Reads a topic of debezium-json to its end and on, committed records only; looks into every ``every``-th."""

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
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        self._ends.set()
        self._thread.join()
        self._consumer.close()

    @property
    def row_count(self) -> int:
        """Rows read so far."""
        return sum(count for _, count in list(self._rows))

    def ages(self, since: float, until: float | None = None) -> Ages:
        """Of the rows read from ``since`` to ``until``, seconds since 1970."""
        last = time.time() if until is None else until
        rows = sum(count for at, count in list(self._rows) if since <= at <= last)
        return Ages([age for at, age in list(self._seen) if since <= at <= last], rows)

    def _observe(self) -> None:
        while not self._ends.is_set():
            # A batch alone is handed out when it is full or its time is up, however long its first row has been there.
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
